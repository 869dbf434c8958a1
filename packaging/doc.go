// Package packaging tests the files of this folder against the program. It has no other code. A test in package cmd
// checks that serve accepts the settings files.
//
//	tasard.toml, systemd, deb, image, compose.yaml   installation and start
//	grafana, prometheus                              dashboard and alerts
package packaging
