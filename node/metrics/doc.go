// Package metrics serves the metrics of a node for Prometheus. Every value is
// read at the time of a scrape from the part of the node that has it (Config), so
// metrics always agree with tasard admin and /readyz.
//
// To add a metric, add a line with name, help, value and labels to the function of
// its part. Labels have closed sets of values. The golden file lists every name.
// Dashboards and alerts rely on the names, so a change belongs into CHANGELOG.md.
package metrics
