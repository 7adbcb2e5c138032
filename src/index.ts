/** The library's public names. */

export { type CheckInput, type CheckReport, runCheck } from './app/check.ts';
export type { OperationContext } from './app/context.ts';
export type { DoctorCheck } from './app/doctor/finding.ts';
export { type DoctorInput, type DoctorReport, runDoctor } from './app/doctor.ts';
export { type ExplainedCode, type ExplainInput, type ExplainReport, runExplain } from './app/explain.ts';
export { type ExportInput, type ExportReport, runExport } from './app/export.ts';
export { type InitInput, type InitReport, runInit } from './app/init.ts';
export { type PreviewInput, type PreviewReport, runPreview } from './app/preview.ts';
export type { Progress } from './app/progress.ts';
export { type RunInput, type RunReport, runRun } from './app/run.ts';
export { runStatus, type StatusInput, type StatusReport } from './app/status.ts';
export { AerieError, ERRORS, type ErrorCode, type ErrorDetail, EXIT_CODE, type Fault } from './base/errors.ts';
export type { Event, EventKind, Facts } from './base/events.ts';
export type { Clock, Host, Random } from './host/host.ts';
export { nodeHost } from './host/node-host.ts';
export type { Provenance, RecordTurn, TrainingRecord } from './shard/record.ts';
