// Package metrics is what Prometheus reads of a node. Every number is asked for
// when it is scraped, of those who have it anyway (Config): there is no second
// bookkeeping that could say something else than tasard admin or /readyz.
//
// Where to add a metric: in the function of the part that has the number, as a
// line with its name, help, value and labels. Labels come from closed lists. The golden file keeps every name: dashboards and alerts, ours in
// packaging among them, rely on them, so a change is one for CHANGELOG.md.
package metrics
