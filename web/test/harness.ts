// The smallest thing that can run tests in a page: tests/browser/test_web.py bundles each *_test.ts with it and reads
// `window.results`.
export interface TestResult {
  name: string;
  failure: string; // empty: passed
}

declare global {
  interface Window {
    results: TestResult[];
  }
}

window.results = [];

export function test(name: string, body: () => void): void {
  let failure = "";
  try {
    body();
  } catch (error) {
    failure = error instanceof Error ? error.message : String(error);
  }
  window.results.push({ name, failure });
}

export function equal<T>(actual: T, expected: T): void {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Error(`got ${a}, expected ${b}`);
}

export function near(actual: number, expected: number): void {
  if (!(Math.abs(actual - expected) <= 1e-9 * Math.max(1, Math.abs(expected)))) {
    throw new Error(`got ${actual}, expected ${expected}`);
  }
}

export function ensure(condition: boolean, words: string): void {
  if (!condition) throw new Error(words);
}
