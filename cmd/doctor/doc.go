// Package doctor is tasard doctor: it checks everything around a node that could
// make it fail or give wrong answers. A check is a method of doctor that adds
// findings; examine lists them in order.
//
// The doctor changes nothing that lasts. It times the disk with a scratch file
// while no node runs, logs in to the mail server without sending an e-mail, and
// connects to hosts of sources only with --network. The rehearsal of required keys
// (rehearsal.go) opens a node on a temporary directory, with the configuration of
// serve, and moves its clock.
//
// To add a check, write a method with the signature of the others in the file of
// its subject, and add it to examine.
package doctor
