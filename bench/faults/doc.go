// Package faults is how the node breaks: the real program under crashes, power cuts, failing disks, clocks that step
// and planted troubles. It has tests alone, all of them behind the build tag faults, because they take minutes;
// make test-faults runs them, make test-faults FAULTS=W1 those of one goal.
//
// A test is named after the goal that it proves, TestFaultsW1_..., and keeps these rules:
//
//   - It counts the faults that fired, prints them in one figure line (figure), and fails when none did.
//   - It has a control: the same test with the bug planted that it is there for, which it must catch.
//   - Where it repeats a fault the environment can say how often: W1_KILLS, W2_CUTS, CLUSTER_KILLS.
//   - What it needs of the machine (root, a loop device, FUSE, strace) it asks for by name (need). Where that is
//     missing it is skipped, and make test-faults counts it.
//
// Tests that mostly wait run side by side (t.Parallel), after all others: none that holds a time against a limit.
//
// The node is a child process (start), its callers and their record of what was acknowledged are in this process (ledger): one ledger for
// a node that is alone, for all nodes of a cluster, and for what a backup must hold. TestFaultsW1_ControlChecker plants each kind of breach
// without any process. Figures are of the process boundary: acknowledged means that the first byte of a good answer arrived here.
//
// TestFaultsCluster_... are of three processes that are one service, and of guests (rig). Their callers go on through every fault (campaign).
// Networks are cut in namespaces of their own (street). The environment sets how many faults: CLUSTER_LEADERS, CLUSTER_KILLS, CLUSTER_CUTS,
// CLUSTER_PAUSES; and CLUSTER_SIDES how many clusters share them, of which as many run at once as there are processors, or as go test
// -parallel says.
package faults
