// For questions that come faster than answers, as while zooming: one is pending, of the others only the last waits.
// Every answer is used, since a slightly old picture is better than none.
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
      }, () => {
        this.busy = false;
      });
    };
    if (this.busy) this.waiting = go;
    else go();
  }
}
