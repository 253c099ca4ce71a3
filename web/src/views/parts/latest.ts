// Answers come when they come: only that to the last question is of use.
export class Latest<T> {
  private asked = 0;
  private key = "";

  // Asks unless the same was asked last; `use` gets the answer unless something else was asked since.
  ask(key: string, question: () => Promise<T>, use: (answer: T) => void): void {
    if (key === this.key) return;
    this.key = key;
    const mine = ++this.asked;
    void question().then((answer) => {
      if (mine === this.asked) use(answer);
    });
  }
}
