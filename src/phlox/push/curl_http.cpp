#include "phlox/push/curl_http.h"

#if !defined(PHLOX_STATIC) && !defined(PHLOX_WITHOUT_CURL)
// Newer headers warn of options that the oldest supported libcurl (7.81) needs, and check the arguments of
// functions that are called by their name.
#define CURL_DISABLE_DEPRECATION
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#endif
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace phlox::push {

#if defined(PHLOX_STATIC)
std::string sending_missing() {
  return "a static program loads no library";
}
#elif defined(PHLOX_WITHOUT_CURL)
std::string sending_missing() {
  return "built without the headers of libcurl";
}
#else
std::string sending_missing() {
  return {};
}
#endif

#if defined(PHLOX_STATIC) || defined(PHLOX_WITHOUT_CURL)

Result<void> load_curl() {
  return fail(ErrorKind::system, "this phlox cannot send anything: " + sending_missing(),
              "docs/installing.md: which phlox has what");
}
std::unique_ptr<Http> make_http(const HttpOptions&, const std::atomic<Nanoseconds>&) {
  return nullptr;
}

#else
namespace {

// What is used of libcurl. The loaded library stays until the program ends.
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
};

CurlCalls& curl_calls() {
  static CurlCalls calls;
  return calls;
}

template <class Function>
bool find_call(void* library, const char* name, Function& into) {
  into = reinterpret_cast<Function>(::dlsym(library, name));
  return into != nullptr;
}

bool find_calls(void* library, CurlCalls& calls) {
  return find_call(library, "curl_global_init", calls.global_init) &&
         find_call(library, "curl_easy_init", calls.easy_init) &&
         find_call(library, "curl_easy_setopt", calls.setopt) &&
         find_call(library, "curl_easy_perform", calls.perform) &&
         find_call(library, "curl_easy_getinfo", calls.getinfo) &&
         find_call(library, "curl_easy_cleanup", calls.cleanup) &&
         find_call(library, "curl_easy_strerror", calls.words) &&
         find_call(library, "curl_slist_append", calls.list_append) &&
         find_call(library, "curl_slist_free_all", calls.list_free);
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
      return Failure::cut_off;
    case CURLE_ABORTED_BY_CALLBACK:
      return Failure::stopped;
    default:
      return Failure::other;
  }
}

class CurlHttp : public Http {
 public:
  CurlHttp(const HttpOptions& options, const std::atomic<Nanoseconds>& give_up_at)
      : options_(options), give_up_at_(give_up_at), handle_(curl_calls().easy_init()) {}
  ~CurlHttp() override {
    if (handle_ != nullptr) curl_calls().cleanup(handle_);
  }
  CurlHttp(const CurlHttp&) = delete;
  CurlHttp& operator=(const CurlHttp&) = delete;

  Answer post(const Target& target, std::string_view body) override {
    Answer answer;
    curl_slist* headers = headers_of(target);
    if (handle_ == nullptr || headers == nullptr) return {0, Failure::other, "no memory", {}, {}};
    prepare(target, body, headers, answer);
    const CURLcode code = curl_calls().perform(handle_);
    // The rest of an answer whose beginning is enough was not read.
    long status = 0;
    curl_calls().getinfo(handle_, CURLINFO_RESPONSE_CODE, &status);
    const bool answered = code == CURLE_OK || (code == CURLE_WRITE_ERROR && status != 0);
    if (answered) {
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
    return answer;
  }

 private:
  static curl_slist* headers_of(const Target& target) {
    std::vector<std::string> lines = {"Expect:"};  // no question before the body
    if (target.protocol == Protocol::otlp) {
      lines.insert(lines.end(), {"Content-Type: application/x-protobuf", "Content-Encoding: gzip"});
    } else {
      lines.insert(lines.end(), {"Content-Type: application/proto", "Connect-Protocol-Version: 1"});
    }
    // With ';' in place of ':', libcurl sends a header without a value.
    for (const Header& header : target.headers)
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

  void prepare(const Target& target, std::string_view body, curl_slist* headers, Answer& answer) {
    constexpr long kConnectPatience = 10'000;
    set(CURLOPT_URL, target.url.c_str());
    set(CURLOPT_PROTOCOLS, long{CURLPROTO_HTTP | CURLPROTO_HTTPS});
    set(CURLOPT_FOLLOWLOCATION, 0L);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_USERAGENT, "phlox/" PHLOX_VERSION);
    set(CURLOPT_HTTPHEADER, headers);
    set(CURLOPT_POST, 1L);
    set(CURLOPT_POSTFIELDS, body.data());
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    set(CURLOPT_CONNECTTIMEOUT_MS, kConnectPatience);
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(options_.patience / 1'000'000));
    if (!options_.certificates.empty()) set(CURLOPT_CAINFO, options_.certificates.c_str());
    set(CURLOPT_WRITEFUNCTION, &CurlHttp::take);
    set(CURLOPT_WRITEDATA, &answer);
    set(CURLOPT_NOPROGRESS, 0L);
    set(CURLOPT_XFERINFOFUNCTION, &CurlHttp::goes_on);
    set(CURLOPT_XFERINFODATA, this);
  }

  static size_t take(char* bytes, size_t size, size_t count, void* into) {
    auto& answer = *static_cast<Answer*>(into);
    const size_t all = size * count;
    const size_t room = kMostOfAnswer - std::min(answer.body.size(), kMostOfAnswer);
    answer.body.append(bytes, std::min(all, room));
    return all <= room ? all : 0;  // ends the transfer
  }

  static int goes_on(void* itself, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    const Nanoseconds end = static_cast<CurlHttp*>(itself)->give_up_at_;
    return end != 0 && clock_now() >= end ? 1 : 0;
  }

  HttpOptions options_;
  const std::atomic<Nanoseconds>& give_up_at_;
  CURL* handle_;
};

}  // namespace

Result<void> load_curl() {
  CurlCalls& calls = curl_calls();
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"}) {
    void* library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr && find_calls(library, calls) &&
        calls.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
      return {};
  }
  return fail(ErrorKind::system, "libcurl is not installed, and phlox sends with it", "apt install libcurl4");
}

std::unique_ptr<Http> make_http(const HttpOptions& options, const std::atomic<Nanoseconds>& give_up_at) {
  return std::make_unique<CurlHttp>(options, give_up_at);
}

#endif

}  // namespace phlox::push
