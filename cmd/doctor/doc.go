// Package doctor implements tasard doctor. It checks what is around a node and could make the node fail. A check is a
// method of the type doctor that adds findings; the method examine lists the checks in order. Problems are printed
// first, after a line that sums up.
//
// The doctor changes nothing: it logs in to the mail server without sending an e-mail, and connects to hosts of sources
// only with --network.
//
// To add a check, write a method with the same signature as the others and add it to examine.
package doctor
