// What the two sides of a difference are called.
import { processName } from "../src/model/catalogue";
import { secondsText } from "../src/views/parts/sides";
import { equal, test } from "./harness";

test("the ends of a short range are told apart", () => {
  equal([secondsText(1_234_567_890, 1e9), secondsText(1_234_567_890, 20_000), secondsText(1_234_587_890, 20_000)], ["1.235", "1.2345679", "1.2345879"]);
  equal(secondsText(0, 1), "0");
});

test("processes of one command line are told apart at their beginning", () => {
  equal(processName({ label: "gunicorn -w 2 app:app (pid 4711)", pid: 4711 }), "4711: gunicorn -w 2 app:app");
});
