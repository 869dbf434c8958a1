// Package metrics serves the metrics of a node for Prometheus. Each scrape reads the current values from the parts of
// the node (Config), so metrics always agree with tasard admin and /readyz.
//
// To add a metric, add a line with name, help, value and labels to the function of its part. Labels have closed sets of
// values. The golden file lists every name. Dashboards and alerts rely on the names, so record a change in
// CHANGELOG.md.
package metrics
