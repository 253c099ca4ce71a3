// Answers may arrive out of order: only the answer to the last question is used.
export class Latest<T> {
  private asked = 0;
  private key = "";

  // Asks unless the last question was the same; calls `use` unless another question followed.
  ask(key: string, question: () => Promise<T>, use: (answer: T) => void): void {
    if (key === this.key) return;
    this.key = key;
    const mine = ++this.asked;
    void question().then((answer) => {
      if (mine === this.asked) use(answer);
    });
  }
}
