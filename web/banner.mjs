// What bundles begin with. A browser reads most functions of a script twice, when it comes and when they are first called;
// this asks it (Chromium since 136) to compile all of them at once, when it comes: nearly all are called for the first picture.

export const BANNER = { js: "//# allFunctionsCalledOnLoad" };
