#include "phlox/http/curl_http.h"

#if !defined(PHLOX_WITHOUT_CURL)
// Newer headers warn of options that the oldest supported libcurl (7.81) needs, and check the arguments of
// functions that are called by their name.
#define CURL_DISABLE_DEPRECATION
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#endif
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "phlox/base/text.h"

namespace phlox::http {

#if defined(PHLOX_WITHOUT_CURL)

std::string missing() {
  return "built without the headers of libcurl";
}
Result<void> load_curl() {
  return fail(ErrorKind::system, "this phlox has no HTTP: " + missing(),
              "docs/installing.md: which phlox has what");
}
bool has_http2() {
  return false;
}
std::unique_ptr<Client> make_client(const ClientOptions&, const std::atomic<Nanoseconds>*) {
  return nullptr;
}

#else

std::string missing() {
  return {};
}

namespace {

// What is used of libcurl.
struct CurlCalls {
  decltype(&curl_global_init) global_init = nullptr;
  decltype(&curl_easy_init) easy_init = nullptr;
  decltype(&curl_easy_setopt) setopt = nullptr;
  decltype(&curl_easy_perform) perform = nullptr;
  decltype(&curl_easy_getinfo) getinfo = nullptr;
  decltype(&curl_easy_cleanup) cleanup = nullptr;
  decltype(&curl_easy_strerror) words = nullptr;
  decltype(&curl_slist_append) list_append = nullptr;
  decltype(&curl_slist_free_all) list_free = nullptr;
  decltype(&curl_version_info) version_info = nullptr;
};

CurlCalls& curl_calls() {
  static CurlCalls calls;
  return calls;
}

#if defined(PHLOX_STATIC)

bool find_calls(CurlCalls& calls) {
  calls = {&curl_global_init,    &curl_easy_init,    &curl_easy_setopt,   &curl_easy_perform,
           &curl_easy_getinfo,   &curl_easy_cleanup, &curl_easy_strerror, &curl_slist_append,
           &curl_slist_free_all, &curl_version_info};
  return true;
}

// A libcurl of a distribution knows its own place. Of Debian and Alpine, Fedora, openSUSE, and Alpine alone.
std::string certificates_here() {
  for (const char* path : {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                           "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}) {
    if (::access(path, R_OK) == 0) return path;
  }
  return {};
}

#else

template <class Function>
bool find_call(void* library, const char* name, Function& into) {
  into = reinterpret_cast<Function>(::dlsym(library, name));
  return into != nullptr;
}

// The loaded library stays until the program ends.
bool find_calls(CurlCalls& calls) {
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"}) {
    void* const library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr && find_call(library, "curl_global_init", calls.global_init) &&
        find_call(library, "curl_easy_init", calls.easy_init) &&
        find_call(library, "curl_easy_setopt", calls.setopt) &&
        find_call(library, "curl_easy_perform", calls.perform) &&
        find_call(library, "curl_easy_getinfo", calls.getinfo) &&
        find_call(library, "curl_easy_cleanup", calls.cleanup) &&
        find_call(library, "curl_easy_strerror", calls.words) &&
        find_call(library, "curl_slist_append", calls.list_append) &&
        find_call(library, "curl_slist_free_all", calls.list_free) &&
        find_call(library, "curl_version_info", calls.version_info))
      return true;
  }
  return false;
}

std::string certificates_here() {
  return {};
}

#endif

std::string certificates_of(const ClientOptions& options) {
  if (!options.certificates.empty()) return options.certificates;
  const char* const named = std::getenv("SSL_CERT_FILE");
  return named != nullptr && *named != '\0' ? named : certificates_here();
}

Failure failure_of(CURLcode code) {
  switch (code) {
    case CURLE_OK:
      return Failure::none;
    case CURLE_COULDNT_RESOLVE_HOST:
      return Failure::no_name;
    case CURLE_COULDNT_CONNECT:
      return Failure::no_connection;
    case CURLE_OPERATION_TIMEDOUT:
      return Failure::too_slow;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return Failure::certificate;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CIPHER:
      return Failure::tls;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_PROXY:
      return Failure::proxy;
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return Failure::cut_off;
    case CURLE_ABORTED_BY_CALLBACK:
      return Failure::stopped;
    default:
      return Failure::other;
  }
}

class CurlClient : public Client {
 public:
  CurlClient(const ClientOptions& options, const std::atomic<Nanoseconds>* give_up_at)
      : options_(options),
        certificates_(certificates_of(options)),
        give_up_at_(give_up_at),
        handle_(curl_calls().easy_init()) {}
  ~CurlClient() override {
    if (handle_ != nullptr) curl_calls().cleanup(handle_);
  }
  CurlClient(const CurlClient&) = delete;
  CurlClient& operator=(const CurlClient&) = delete;

  Answer send(const Request& request) override {
    Transfer transfer{*this, request, {}};
    Answer& answer = transfer.answer;
    curl_slist* headers = list_of(request.headers);
    if (handle_ == nullptr || headers == nullptr) return {0, Failure::other, "no memory", {}, {}, {}};
    prepare(transfer, headers);
    const CURLcode code = curl_calls().perform(handle_);
    // The rest of an answer whose beginning is enough was not read.
    const long status = status_now();
    const bool is_enough = code == CURLE_WRITE_ERROR && status != 0 && !takes(transfer);
    if (code == CURLE_OK || is_enough || !answer.headers.empty()) {
      answer.status = static_cast<int>(status);
      curl_off_t seconds = 0;
      curl_calls().getinfo(handle_, CURLINFO_RETRY_AFTER, &seconds);
      constexpr curl_off_t kMost = 1'000'000;
      if (seconds > 0) answer.retry_after = std::min(seconds, kMost) * kSecond;
    } else {
      answer.failure = failure_of(code);
      answer.words = curl_calls().words(code);
    }
    curl_calls().list_free(headers);
    return std::move(answer);
  }

 private:
  struct Transfer {
    CurlClient& client;
    const Request& request;
    Answer answer;
  };

  static curl_slist* list_of(const std::vector<Header>& headers) {
    std::vector<std::string> lines = {"Expect:"};  // no question before the body
    // With ';' in place of ':', libcurl sends a header without a value.
    for (const Header& header : headers)
      lines.push_back(header.value.empty() ? header.name + ";" : header.name + ": " + header.value);
    curl_slist* list = nullptr;
    for (const std::string& line : lines) {
      curl_slist* longer = curl_calls().list_append(list, line.c_str());
      if (longer == nullptr) {
        curl_calls().list_free(list);
        return nullptr;
      }
      list = longer;
    }
    return list;
  }

  template <class Value>
  void set(CURLoption option, Value value) {
    curl_calls().setopt(handle_, option, value);
  }

  void prepare(Transfer& transfer, curl_slist* headers) {
    constexpr long kMostRedirections = 5, kWeb = CURLPROTO_HTTP | CURLPROTO_HTTPS;
    set(CURLOPT_URL, transfer.request.url.c_str());
    set(CURLOPT_PROTOCOLS, kWeb);
    set(CURLOPT_REDIR_PROTOCOLS, kWeb);
    set(CURLOPT_FOLLOWLOCATION, long{options_.follow});
    set(CURLOPT_MAXREDIRS, kMostRedirections);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_USERAGENT, "phlox/" PHLOX_VERSION);
    set(CURLOPT_HTTPHEADER, headers);
    if (transfer.request.body) {
      set(CURLOPT_POST, 1L);
      set(CURLOPT_POSTFIELDS, transfer.request.body->data());
      set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(transfer.request.body->size()));
    } else {
      set(CURLOPT_HTTPGET, 1L);
    }
    set_version(transfer.request);
    set(CURLOPT_HEADERFUNCTION, &CurlClient::take_header);
    set(CURLOPT_HEADERDATA, &transfer);
    set_patience();
    if (!certificates_.empty()) set(CURLOPT_CAINFO, certificates_.c_str());
    set(CURLOPT_WRITEFUNCTION, &CurlClient::take);
    set(CURLOPT_WRITEDATA, &transfer);
    set(CURLOPT_NOPROGRESS, 0L);
    set(CURLOPT_XFERINFOFUNCTION, &CurlClient::goes_on);
    set(CURLOPT_XFERINFODATA, this);
  }

  void set_version(const Request& request) {
    const bool encrypted = lower_case(request.url.substr(0, 6)) == "https:";
    set(CURLOPT_HTTP_VERSION, !request.http2 ? long{CURL_HTTP_VERSION_NONE}
                              : encrypted    ? long{CURL_HTTP_VERSION_2TLS}
                                             : long{CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE});
    set(CURLOPT_HTTPPROXYTUNNEL, long{request.http2});
    // libcurl 7.88 begins HTTP/2 a second time on such a connection if it uses it again.
    set(CURLOPT_FRESH_CONNECT, long{request.http2 && !encrypted});
    set(CURLOPT_FORBID_REUSE, long{request.http2 && !encrypted});
  }

  void set_patience() {
    constexpr long kConnectPatience = 10'000, kLeastBytes = 100 << 10;
    set(CURLOPT_CONNECTTIMEOUT_MS, kConnectPatience);
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(options_.patience / 1'000'000));
    const long seconds = static_cast<long>(options_.slow / kSecond);
    if (seconds <= 0) return;
    set(CURLOPT_LOW_SPEED_TIME, seconds);
    set(CURLOPT_LOW_SPEED_LIMIT, std::max(1L, kLeastBytes / seconds));
  }

  long status_now() {
    long status = 0;
    curl_calls().getinfo(handle_, CURLINFO_RESPONSE_CODE, &status);
    return status;
  }
  bool takes(const Transfer& transfer) { return transfer.request.take && status_now() == 200; }

  static size_t take(char* bytes, size_t size, size_t count, void* into) {
    auto& transfer = *static_cast<Transfer*>(into);
    const size_t all = size * count;
    if (transfer.client.takes(transfer)) return transfer.request.take({bytes, all}) ? all : 0;
    std::string& body = transfer.answer.body;
    const size_t room = kMostOfAnswer - std::min(body.size(), kMostOfAnswer);
    body.append(bytes, std::min(all, room));
    return all <= room ? all : 0;  // ends the transfer
  }

  // A whole line each time, also of a proxy's answer, and at the end those of the trailers.
  static size_t take_header(char* bytes, size_t size, size_t count, void* into) {
    constexpr size_t kMostHeaders = 32, kLongest = 4096;
    auto& transfer = *static_cast<Transfer*>(into);
    const std::string& kept = transfer.request.keep_headers;
    const std::string_view line(bytes, size * count);
    const size_t colon = line.find(':');
    if (kept.empty() || colon == std::string_view::npos || line.size() > kLongest ||
        transfer.answer.headers.size() >= kMostHeaders || lower_case(line.substr(0, kept.size())) != kept)
      return line.size();
    constexpr std::string_view kBlank = " \t\r\n";
    std::string_view value = line.substr(colon + 1);
    value.remove_prefix(std::min(value.find_first_not_of(kBlank), value.size()));
    value = value.substr(0, value.find_last_not_of(kBlank) + 1);
    transfer.answer.headers.push_back({std::string(line.substr(0, colon)), std::string(value)});
    return line.size();
  }

  static int goes_on(void* itself, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    const auto* const give_up_at = static_cast<CurlClient*>(itself)->give_up_at_;
    const Nanoseconds end = give_up_at == nullptr ? 0 : give_up_at->load();
    return end != 0 && clock_now() >= end ? 1 : 0;
  }

  const ClientOptions options_;
  const std::string certificates_;
  const std::atomic<Nanoseconds>* const give_up_at_;
  CURL* const handle_;
};

Result<void> find_curl() {
  CurlCalls& calls = curl_calls();
  if (find_calls(calls) && calls.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) return {};
  return fail(ErrorKind::system, "libcurl is not installed, and Phlox needs it for HTTP",
              "apt install libcurl4");
}

}  // namespace

Result<void> load_curl() {
  static const Result<void> loaded = find_curl();
  return loaded;
}

bool has_http2() {
  const curl_version_info_data* const info = curl_calls().version_info(CURLVERSION_NOW);
  return info != nullptr && (info->features & CURL_VERSION_HTTP2) != 0;
}

std::unique_ptr<Client> make_client(const ClientOptions& options,
                                    const std::atomic<Nanoseconds>* give_up_at) {
  return std::make_unique<CurlClient>(options, give_up_at);
}

#endif

}  // namespace phlox::http
