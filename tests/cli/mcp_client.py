"""A client of the Model Context Protocol over the standard streams of the built phlox: raw messages, one a line."""
import json
import queue
import subprocess
import threading

from cli_support import LIMIT, PHLOX


class Client:
    """`command`: before phlox, as setpriv is. The version of the protocol is agreed on at the start, if one is given."""

    def __init__(self, *arguments, command=(), version="2025-11-25", phlox=PHLOX, **options):
        self.process = subprocess.Popen([*command, phlox, "mcp", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, **options)
        self.lines = queue.Queue()
        self.said = []  # on standard error
        self.notifications = []
        self.last_id = 0
        self.threads = [threading.Thread(target=self._read), threading.Thread(target=lambda: self.said.extend(self.process.stderr))]
        for thread in self.threads:
            thread.start()
        if version:
            agreed = self.ask("initialize", protocolVersion=version, capabilities={}, clientInfo={"name": "test", "version": "1"})
            assert agreed["result"]["protocolVersion"] == version
            self.notify("notifications/initialized")

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def put(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def notify(self, method, **params):
        self.put(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}))

    def begin(self, method, **params):
        """Sends a request and returns its id."""
        self.last_id += 1
        self.put(json.dumps({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}))
        return self.last_id

    def next(self):
        """The next message; None: there will be none. Every line must be one."""
        line = self.lines.get(timeout=LIMIT)
        return None if line is None else json.loads(line)

    def answer_to(self, number):
        while True:
            message = self.next()
            assert message is not None, "the server has ended"
            if "method" in message:
                self.notifications.append(message)
                continue
            assert message["id"] == number, message
            return message

    def ask(self, method, **params):
        return self.answer_to(self.begin(method, **params))

    def begin_call(self, tool, /, progress=None, **arguments):
        meta = {} if progress is None else {"_meta": {"progressToken": progress}}
        return self.begin("tools/call", name=tool, arguments=arguments, **meta)

    def call(self, tool, /, **arguments):
        """The result of a call that succeeds."""
        answer = self.ask("tools/call", name=tool, arguments=arguments)["result"]
        assert not answer["isError"], answer
        return answer

    def refusal(self, tool, /, **arguments):
        """The structured content of a call that is refused; its text says the same."""
        answer = self.ask("tools/call", name=tool, arguments=arguments)["result"]
        assert answer["isError"], answer
        refused = answer["structuredContent"]
        assert answer["content"][0]["text"].startswith(refused["error"])
        assert refused["hint"] in answer["content"][0]["text"]
        return refused

    def end(self):
        """Closes its input; its status."""
        if not self.process.stdin.closed:
            self.process.stdin.close()
        return self.process.wait(LIMIT)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for thread in self.threads:
            thread.join()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()
