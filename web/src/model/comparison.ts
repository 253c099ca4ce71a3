// Statistics of the difference of two recordings, or of two parts of one, from sampling error alone, like
// judge_recordings in report/comparison.cpp. tests/cases/comparison.json checks both. No DOM.
import { missing, quantile } from "./analysis";

export interface Amount {
  value: number;
  variance: number; // from sampling alone
  step: number; // the weight of one sample
  unseen?: number; // the recording's time without samples: it may belong to this, too
}

// A difference below either of these is not reported.
export interface Margin {
  own: number; // a share of the larger of the two
  least: number; // an amount
}

export type Outcome = "same" | "unclear" | "less" | "more";

export interface Comparison {
  difference: number;
  low: number; // 99 % interval for this item alone
  high: number;
  outcome: Outcome;
}

const falseAlarms = 0.01; // for a whole comparison

export const marginOf = ({ own, least }: Margin, before: number, after: number) =>
  Math.max(own * Math.max(before, after), least);

const reach = (before: Amount, after: Amount, z: number) =>
  z *
  Math.sqrt(before.variance + after.variance + ((z * z) / 4) * (before.step * before.step + after.step * after.step));

// The 99 % interval of a single amount.
export const reachOfOne = (amount: Amount) => reach(amount, { value: 0, variance: 0, step: 0 }, quantile(missing));

// How far a difference may be from the true one when `compared` differences are tested at once (Bonferroni).
export const reachOf = (before: Amount, after: Amount, compared: number) =>
  reach(before, after, quantile(falseAlarms / Math.max(1, compared)));

// `strict` is quantile(falseAlarms / compared), `single` quantile(missing): the same for all rows.
export function judge(before: Amount, after: Amount, margin: Margin, strict: number, single: number): Comparison {
  const difference = after.value - before.value;
  const own = reach(before, after, single);
  const far = reach(before, after, strict);
  const least = marginOf(margin, before.value, after.value);
  const [less, more] = [before.unseen ?? 0, after.unseen ?? 0];
  const [lowest, highest] = [difference - far - less, difference + far + more];
  const isSame = lowest >= -least && highest <= least;
  const outcome = lowest > 0 && difference > least
    ? "more"
    : highest < 0 && -difference > least
    ? "less"
    : isSame
    ? "same"
    : "unclear";
  return { difference, low: difference - own - less, high: difference + own + more, outcome };
}

export const judgeRecordings = (before: Amount, after: Amount, margin: Margin, compared: number) =>
  judge(before, after, margin, quantile(falseAlarms / Math.max(1, compared)), quantile(missing));

export const strictness = (compared: number) => ({ strict: quantile(falseAlarms / Math.max(1, compared)),
  single: quantile(missing) });
