// Package doctor implements tasard doctor. It checks everything around a node that could make the node fail or give
// wrong answers. A check is a method of the type doctor that adds findings; the function examine lists the checks in
// order.
//
// The doctor leaves no changes behind:
//
//   - To time the disk it writes a scratch file, but only while no node is running.
//   - It logs in to the mail server without sending an e-mail.
//   - It connects to hosts of sources only with --network.
//   - The rehearsal (rehearsal.go) shows what happens when the node begins to require API keys. It opens a node on a
//     temporary directory, with the configuration of serve, and moves the clock of this node.
//
// To add a check, write a method with the same signature as the others, in the file of its subject, and add it to
// examine.
package doctor
