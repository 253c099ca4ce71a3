// What the two sides of a difference are called.
import { Process, processName, Thread } from "../src/model/catalogue";
import { activities } from "../src/model/states";
import { busiestTwo, secondsText } from "../src/views/parts/sides";
import { equal, test } from "./harness";

test("the ends of a short range are told apart", () => {
  equal([secondsText(1_234_567_890, 1e9), secondsText(1_234_567_890, 20_000), secondsText(1_234_587_890, 20_000)], [
    "1.235",
    "1.2345679",
    "1.2345879",
  ]);
  equal(secondsText(0, 1), "0");
});

test("processes of one command line are told apart at their beginning", () => {
  equal(processName({ label: "gunicorn -w 2 app:app (pid 4711)", pid: 4711 }), "4711: gunicorn -w 2 app:app");
});

test("a comparison begins with the two busiest, in the order of their lists", () => {
  const thread = (process: number) => ({ process }) as Thread;
  const process = {} as Process;
  const cpu = [0, 5, 0, 9, 1]; // a master asleep, two workers, of which the second has two threads
  const totals = { cpu: Float64Array.from(cpu), activity: new Float64Array(cpu.length * activities),
    samples: new Float64Array(cpu.length) };
  const catalogue = { threads: [thread(0), thread(1), thread(-1), thread(2), thread(2)],
    processes: [process, process, process] };
  equal(busiestTwo(catalogue, totals), { threads: [1, 3], processes: [1, 2] });
  equal(
    busiestTwo({ threads: [thread(0)], processes: [process] }, { cpu: new Float64Array(1),
      activity: new Float64Array(activities), samples: new Float64Array(1) }),
    { threads: [0, 1], processes: [0, 1] },
  );
});
