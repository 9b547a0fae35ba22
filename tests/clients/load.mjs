// The build copies this beside the installed packages, where their names resolve as in an application of theirs.
export const load = (name) => import(name);
