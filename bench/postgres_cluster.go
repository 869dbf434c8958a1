package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// clusterUser is the name under which the bench speaks to its PostgreSQL, and of the database.
const clusterUser = "bench"

// cluster is a PostgreSQL of our own: its directory and socket are open to nobody else, and it listens on no port.
type cluster struct {
	dir     string // with the socket
	process *child // the postmaster; its backends end with it
}

// clusterSettings are what a good engineer would set for a small, hot database on one core.
func clusterSettings(dir string) []string {
	return []string{
		"listen_addresses=", "unix_socket_directories=" + dir, "unix_socket_permissions=0700",
		"max_connections=64",
		"shared_buffers=256MB", "effective_cache_size=1GB", "wal_buffers=16MB",
		"max_wal_size=4GB", "checkpoint_timeout=30min", // no checkpoint within a run
		"wal_level=minimal", "max_wal_senders=0",
		"synchronous_commit=on", // what was counted stays counted, as the node promises
		"jit=off", "max_parallel_workers_per_gather=0", "random_page_cost=1.1", "plan_cache_mode=force_generic_plan",
		"update_process_title=off",
	}
}

// startCluster makes a cluster and starts it on one core.
func startCluster(ctx context.Context, core int) (c *cluster, err error) {
	owner, err := clusterOwner()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "tasard-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for PostgreSQL: %w", err)
	}
	c = &cluster{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.stop())
		}
	}()
	if owner != nil {
		if err := os.Chown(dir, int(owner.uid), int(owner.gid)); err != nil {
			return nil, fmt.Errorf("give the directory to PostgreSQL's user: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, startMax)
	defer cancel()
	data := filepath.Join(dir, "data")
	if err := runThrough(ctx, &command{
		name: "initdb", program: program{path: filepath.Join(postgresBin(), "initdb")}, dir: dir, user: owner,
		// The directory is open to nobody else, so whoever reaches the socket may come in.
		args: []string{"--pgdata", data, "--username", clusterUser, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"},
	}); err != nil {
		return nil, err
	}
	args := []string{"-D", data}
	for _, setting := range clusterSettings(dir) {
		args = append(args, "-c", setting)
	}
	c.process, err = spawn(&command{
		name: "PostgreSQL", program: program{path: filepath.Join(postgresBin(), "postgres")}, args: args, dir: dir, user: owner,
		ends: syscall.SIGINT, orphaned: syscall.SIGINT, // the fast shutdown: it waits for no client
	}, core)
	if err != nil {
		return nil, err
	}
	_, err = c.process.line(ctx, "ready to accept connections")
	return c, err
}

// stop ends PostgreSQL and removes everything of it.
func (c *cluster) stop() error {
	err := stopOf(&c.process)
	return errors.Join(err, os.RemoveAll(c.dir))
}

// runThrough runs a process to its end.
func runThrough(ctx context.Context, c *command) error {
	p, err := spawn(c, -1)
	if err != nil {
		return err
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		p.kill()
		return fmt.Errorf("%s: %w; its last lines:\n%s", c.name, ctx.Err(), p.output)
	}
	if p.ended != nil {
		return fmt.Errorf("%s: %w; its last lines:\n%s", c.name, p.ended, p.output)
	}
	return nil
}

// clusterOwner is the user under which PostgreSQL runs when the bench is root, whom it refuses: Debian's own, or nobody. nil is
// the bench's user.
func clusterOwner() (*owner, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(found.Uid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("read the number of user %s: %w", name, err)
		}
		gid, err := strconv.ParseUint(found.Gid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("read the group of user %s: %w", name, err)
		}
		return &owner{uint32(uid), uint32(gid)}, nil
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is neither a user postgres nor nobody; run the bench as another user")
}

// postgresBin is the directory of PostgreSQL's programs, "" when there is none. Debian keeps each version in a directory of its own.
func postgresBin() string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres") // the pattern is well-formed
	if len(found) > 0 {
		return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return postgresVersion(a) - postgresVersion(b) }))
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		return filepath.Dir(path)
	}
	return ""
}

// postgresVersion is the number in /usr/lib/postgresql/15/bin/postgres.
func postgresVersion(path string) int {
	version, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path)))) // else the last that is taken
	return version
}
