// What bench/harness/page_timings.py runs inside of pages: moments and durations by the browser's own clock.
(() => {
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  // After what a frame has drawn is laid out and painted.
  const painted = () => new Promise((resolve) => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => resolve(performance.now());
    port2.postMessage(0);
  }));
  const marks = () => performance.getEntriesByName("phlox drawn").length;
  const idle = () => document.body?.getAttribute("aria-busy") === "false";

  const bench = {
    // ms from the start of the navigation until there is a picture: phlox' page with every view in sight drawn, speedscope's with
    // its profile named and its canvases there.
    async open() {
      const there = () => (document.body?.hasAttribute("aria-busy") ? idle() && marks() > 0
        : / - speedscope$/.test(document.title) && document.querySelectorAll("canvas").length > 1);
      while (!there()) await frame();
      return painted();
    },

    // ms from another address until every view in sight is drawn, and how long the model took, by question.
    async go(fragment) {
      performance.clearMarks();
      performance.clearMeasures();
      const begun = performance.now();
      const turned = new Promise((resolve) => window.addEventListener("hashchange", resolve, { once: true }));
      window.location.hash = fragment;
      await turned;
      do await frame(); while (!idle());
      await new Promise((resolve) => setTimeout(resolve, 50));
      while (!idle()) await frame();
      const drawn = performance.getEntriesByName("phlox drawn");
      const model = {};
      for (const { name, duration } of performance.getEntriesByType("measure")) {
        const question = name.replace(/^phlox /, "");
        if (!question.endsWith(" drawn")) model[question] = (model[question] ?? 0) + duration;
      }
      return { drawn: (drawn.length ? drawn[drawn.length - 1].startTime : performance.now()) - begun, model };
    },

    // One redraw after another: ms that the page held up its thread for each, from the event's handler to the end of painting.
    async redraw(selector, kind, steps) {
      const target = document.querySelector(selector);
      const box = target.getBoundingClientRect();
      const [x, y] = [box.left + box.width * 0.6, box.top + Math.min(box.height - 4, 30)];
      const times = [];
      for (let step = 0; step < steps; ++step) {
        const by = step < steps / 2 ? 1 : -1;
        const deltas = { zoom: { deltaY: -40 * by, ctrlKey: true }, pan: { deltaX: 60 * by, deltaY: 0, shiftKey: true } }[kind];
        times.push(await bench.one(() => {
          if (kind === "into" && step % 2) window.dispatchEvent(new KeyboardEvent("keydown", { key: "Home" }));
          else if (kind === "into") target.dispatchEvent(new MouseEvent("click", { clientX: box.left + box.width * (0.1 + (0.8 * step) / steps), clientY: box.top + 4.5 * 18 }));
          else if (deltas) target.dispatchEvent(new WheelEvent("wheel", { bubbles: true, cancelable: true, clientX: x, clientY: y, ...deltas }));
          else target.scrollTop += 60 * by;
        }));
      }
      return times;
    },

    async one(act) {
      await painted();
      let frameBegan = 0;
      requestAnimationFrame(() => { frameBegan = performance.now(); }); // before whatever the page does in this frame
      const begun = performance.now();
      act();
      const handled = performance.now() - begun;
      return handled + (await painted()) - frameBegan;
    },
  };
  window.phloxBench = bench;
})();
