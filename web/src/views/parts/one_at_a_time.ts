// Questions that come faster than answers, as while zooming: one is on its way, the last of the others waits. Every answer is
// used, since what is drawn from one that is a little old is better than nothing.
export class OneAtATime<T> {
  private key = "";
  private busy = false;
  private waiting: (() => void) | null = null;

  ask(key: string, question: () => Promise<T>, use: (answer: T) => void): void {
    if (key === this.key) return;
    this.key = key;
    const go = () => {
      this.busy = true;
      void question().then((answer) => {
        this.busy = false;
        use(answer);
        const next = this.waiting;
        this.waiting = null;
        next?.();
      }, () => { this.busy = false; });
    };
    if (this.busy) this.waiting = go;
    else go();
  }
}
