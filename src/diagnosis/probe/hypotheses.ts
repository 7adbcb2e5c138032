/**
 * The four things that a server without a quick answer can be: still loading, hung, crashed, well and busy; each with what
 * speaks for it and against it, in lines and figures. Pure.
 */
import { busy } from './busy.ts';
import { crashed } from './crashed.ts';
import type { Activity, ProbeEvidence, ProbeHypothesis } from './evidence.ts';
import { hung } from './hung.ts';
import { loading } from './loading.ts';
import { viewOf } from './view.ts';

export function hypothesesOf(evidence: ProbeEvidence, activity: Activity): ProbeHypothesis[] {
  const view = viewOf(evidence, activity);
  return view === undefined ? [] : [loading(view), hung(view), crashed(view), busy(view)];
}
