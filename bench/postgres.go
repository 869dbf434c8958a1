//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// postgresConnections is the size of the connection pool: enough to keep one core busy.
const postgresConnections = 4

// startPostgres runs PostgreSQL with the node's rates, and a net/http server in front of it. Both run on one core, as
// the node does. Each request runs one indexed query; keys and quotas are not checked.
func startPostgres(ctx context.Context, self string, node *server, key string, core int) (*server, error) {
	programs, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // where Debian installs PostgreSQL
	if path, err := exec.LookPath("postgres"); err == nil {
		programs = append(programs, filepath.Dir(path))
	}
	if len(programs) == 0 {
		return nil, &missingError{postgresName, "PostgreSQL is not installed (Debian: postgresql)"}
	}
	scratch, err := os.MkdirTemp("", "tasard-bench-postgres-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for PostgreSQL: %w", err)
	}
	database := &server{name: "PostgreSQL", scratchDir: scratch}
	if err = database.startDatabase(ctx, programs[len(programs)-1], core); err == nil {
		var frontend *server
		if frontend, err = startListening(ctx, &command{name: postgresName, argv: []string{self, "postgres", scratch, node.address, key}}, core, key); err == nil {
			frontend.processes, frontend.scratchDir = append(frontend.processes, database.processes...), scratch
			return frontend, nil
		}
	}
	return nil, errors.Join(err, database.stop())
}

// startDatabase initializes and starts PostgreSQL, with settings for a small database in memory on one core. It
// listens only on a Unix socket that other users cannot open.
func (s *server) startDatabase(ctx context.Context, programs string, core int) error {
	if os.Geteuid() == 0 {
		if text, err := exec.CommandContext(ctx, "chown", "postgres", s.scratchDir).CombinedOutput(); err != nil {
			return fmt.Errorf("find a user for PostgreSQL: %w %s", err, text)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	data := filepath.Join(s.scratchDir, "data")
	// Other users cannot open the directory of the socket, so connections need no authentication.
	initdb := strings.Fields(programs + "/initdb --username bench --auth=trust --encoding=UTF8 --locale=C --no-sync --pgdata " + data)
	p, err := startProcess(&command{name: "initdb", argv: asPostgresUser(initdb...), dir: s.scratchDir}, -1)
	if err == nil {
		err = p.awaitExit(ctx)
	}
	if err != nil {
		return err
	}
	argv := []string{filepath.Join(programs, "postgres"), "-D", data}
	for _, setting := range []string{
		"listen_addresses=", "unix_socket_directories=" + s.scratchDir, "unix_socket_permissions=0700",
		"shared_buffers=256MB", "effective_cache_size=1GB", "jit=off", "max_parallel_workers_per_gather=0", "random_page_cost=1.1",
		"plan_cache_mode=force_generic_plan", "update_process_title=off",
		"checkpoint_timeout=30min", // longer than a run, so that none starts during it
	} {
		argv = append(argv, "-c", setting)
	}
	// SIGINT is the fast shutdown, which does not wait for clients.
	if p, err = startProcess(&command{name: "PostgreSQL", argv: asPostgresUser(argv...), dir: s.scratchDir, stopSignal: syscall.SIGINT}, core); err != nil {
		return err
	}
	s.processes = []*process{p}
	_, err = p.awaitLine(ctx, "ready to accept connections")
	return err
}

// asPostgresUser returns a command line that runs argv as the user postgres if the bench runs as root. PostgreSQL
// refuses to run as root.
func asPostgresUser(argv ...string) []string {
	if os.Geteuid() != 0 {
		return argv
	}
	// A change of user resets the signal that the process gets when the bench dies (Pdeathsig, see startProcess).
	// setpriv therefore sets it again.
	return append([]string{"setpriv", "--pdeathsig", "INT", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"}, argv...)
}

// A row of the table has the JSON of a rate from the node's response, and the columns that select and rank rates. The
// index has the rows in the order of the ranking.
const (
	databaseTable = `CREATE TABLE rates (currency text, kind text, sell numeric, priority bigint, collected text, institution text, channel text,
		expires timestamptz, shown json)`
	databaseFill = `INSERT INTO rates SELECT r->>'currency', r->>'kind', (r->>'sell')::numeric, (r->>'priority')::bigint, r->>'collectedAt',
		r->>'institutionId', r->>'channel', (r->>'expiresAt')::timestamptz, r FROM json_array_elements($1::json) r`
	databaseIndex = `CREATE INDEX ON rates (currency, sell, priority, collected DESC, institution, channel) INCLUDE (expires)
		WHERE kind = 'commercial' AND sell IS NOT NULL`
	currentRates = `FROM rates WHERE currency = $1 AND kind = 'commercial' AND sell IS NOT NULL AND expires > now()`
	rankingQuery = `SELECT (SELECT count(*) ` + currentRates + `), shown ` + currentRates + `
		ORDER BY sell, priority, collected DESC, institution, channel LIMIT $2`
)

// runPostgres is the subcommand bench postgres DIRECTORY NODE KEY. DIRECTORY is the directory with the Unix socket of
// PostgreSQL, NODE the address of a node, and KEY an API key. runPostgres copies the rates of the node into PostgreSQL,
// prints its own address and serves /v1/rates/best?operation=buy.
func runPostgres(ctx context.Context, args []string, out io.Writer) error {
	if len(args) != 3 {
		return fmt.Errorf("bench postgres: want a directory, the address of a node and a key, found %q", args)
	}
	config, err := pgxpool.ParseConfig("user=bench dbname=postgres sslmode=disable host=" + args[0])
	if err != nil {
		return fmt.Errorf("configure the pool: %w", err)
	}
	config.MinConns, config.MaxConns = postgresConnections, postgresConnections
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("open the pool: %w", err)
	}
	defer pool.Close()
	if err := fillDatabase(ctx, pool, &server{name: "node", address: args[1]}, args[2]); err != nil {
		return fmt.Errorf("fill PostgreSQL: %w", err)
	}
	handler := func(w http.ResponseWriter, r *http.Request) { serveBestRates(w, r, pool) }
	server := &http.Server{Handler: http.HandlerFunc(handler), ReadTimeout: readTimeoutDefault, WriteTimeout: writeTimeoutDefault, IdleTimeout: idleTimeoutDefault}
	return serveUntil(ctx, out, server.Serve)
}

// fillDatabase copies the node's rates into the database, then vacuums the table and writes a checkpoint.
func fillDatabase(ctx context.Context, pool *pgxpool.Pool, node *server, key string) error {
	if _, err := pool.Exec(ctx, databaseTable); err != nil {
		return err
	}
	for cursor, more := 0, true; more; {
		_, response, err := node.capture(ctx, key, &requestTemplate{path: fmt.Sprintf("/v1/rates?limit=200&cursor=%d", cursor)})
		if err != nil {
			return err
		}
		var page struct {
			Data json.RawMessage
			Meta struct{ NextCursor *int }
		}
		if err := json.Unmarshal(response.Body(), &page); err != nil {
			return err
		}
		if _, err := pool.Exec(ctx, databaseFill, string(page.Data)); err != nil {
			return err
		}
		if more = page.Meta.NextCursor != nil; more {
			cursor = *page.Meta.NextCursor
		}
	}
	for _, statement := range []string{databaseIndex, "VACUUM (FREEZE, ANALYZE) rates", "CHECKPOINT"} {
		if _, err := pool.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// serveBestRates returns the same response body as the node. It supports only the requests of mixBestRates.
func serveBestRates(w http.ResponseWriter, r *http.Request, pool *pgxpool.Pool) {
	values := r.URL.Query()
	limit, err := strconv.Atoi(values.Get("limit"))
	if err != nil || values.Get("operation") != "buy" || r.URL.Path != "/v1/rates/best" {
		http.Error(w, "want /v1/rates/best with operation=buy and a limit", http.StatusBadRequest)
		return
	}
	var page struct {
		Data []json.RawMessage `json:"data"`
		Meta struct {
			Total         int    `json:"total"`
			NextCursor    *int   `json:"nextCursor"`
			GeneratedAt   string `json:"generatedAt"`
			QuoteCurrency string `json:"quoteCurrency"`
		} `json:"meta"`
		Operation string `json:"operation"`
	}
	page.Data = make([]json.RawMessage, 0, min(limit, 200))
	rows, _ := pool.Query(r.Context(), rankingQuery, values.Get("currency"), limit) // ForEachRow returns the error of Query
	var rate json.RawMessage
	if _, err := pgx.ForEachRow(rows, []any{&page.Meta.Total, &rate}, func() error {
		page.Data = append(page.Data, slices.Clone(rate))
		return nil
	}); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	page.Meta.GeneratedAt, page.Meta.QuoteCurrency, page.Operation = time.Now().UTC().Format(time.RFC3339), "DOP", "buy"
	if cursor := len(page.Data); cursor < page.Meta.Total {
		page.Meta.NextCursor = &cursor
	}
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(&page); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	text := bytes.TrimSuffix(body.Bytes(), []byte("\n"))
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.Header().Set("Cache-Control", "private, max-age=60")
	_, _ = w.Write(text) // fails only if the client is gone
}
