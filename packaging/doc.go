// Package packaging has only tests: they hold the files of this folder, from which packages and images are made and by which nodes are
// watched, against the program. What serve itself must take of them is tested in the root, by reading it as serve does.
//
//	tasard.toml, systemd, deb, image, compose.yaml   what is installed and how it starts
//	grafana, prometheus                              what is seen of nodes and when someone is woken
package packaging
