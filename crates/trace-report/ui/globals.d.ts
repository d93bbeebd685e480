// What the page has beside its modules.

/** The text of the worker, which joining the modules puts there. */
declare const WORKER: string;
