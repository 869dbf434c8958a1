//go:build faults && linux

package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// nodeOf is a node on a small fixture, which nginx and PostgreSQL are compared with.
func nodeOf(t *testing.T) (*target, *fixture) {
	t.Helper()
	f, err := newFixture(t.TempDir(), fixtureSize{institutions: 44, currencies: 3, accounts: 5, days: 1})
	if err != nil {
		t.Fatal(err)
	}
	return started(t, newNode(buildNode(t, "", "", ""), f)), f
}

// TestFaultsF6_Nginx wants the node's body of nginx, with what says how to read it.
func TestFaultsF6_Nginx(t *testing.T) {
	found, f := nodeOf(t)
	for _, q := range []question{{operation: "best", path: bestTarget}, {operation: "gzip", path: fullTarget, lines: "Accept-Encoding: gzip\r\n"}} {
		replies, err := capture(t.Context(), found.address, f.keys[0], []question{q})
		if err != nil {
			t.Fatal(err)
		}
		wanted, err := replies[0].response()
		if err != nil {
			t.Fatal(err)
		}
		nginx := newNginx(t.TempDir(), replies)
		target := started(t, nginx)
		got := asked(t, target, "", &q)
		for _, name := range []string{"Content-Type", "Content-Encoding"} {
			if !bytes.Equal(got.Header.Peek(name), wanted.Header.Peek(name)) || !bytes.Equal(got.Body(), wanted.Body()) {
				t.Errorf("%s: another %s or body than the node's: %s, %.300s", q.operation, name, got.Header.Peek(name), got.Body())
			}
		}
		busy(t, target, "", &q)
		ended(t, nginx, target)
	}
	if _, err := newNginx(t.TempDir(), []reply{{Target: "/a?b"}, {Target: "/a?c"}}).start(t.Context(), -1); err == nil {
		t.Error("two replies to one path are taken")
	}
}

// TestFaultsF7_Postgres wants the node's answers of PostgreSQL, counted and not, and refusals where the node refuses.
func TestFaultsF7_Postgres(t *testing.T) {
	found, f := nodeOf(t)
	rates, err := readPublished(t.Context(), found.address, f.keys[0])
	if err != nil || len(rates) < 3*44 {
		t.Fatalf("%d rates are published: %v", len(rates), err)
	}
	withoutTime := func(body []byte) string {
		return regexp.MustCompile(`"generatedAt":"[^"]*"`).ReplaceAllString(string(body), "")
	}
	unknownKey := "tasard_test_" + strings.Repeat("0", 30) + "0FpGnC" // of the right form, whether or not its checksum is
	for _, quota := range []bool{true, false} {
		postgres := newPostgres(testProgram(t), rates, f.keys, quota)
		target := started(t, postgres)
		for _, path := range []string{
			bestTarget, fullTarget, "/v1/rates/best?currency=EUR&operation=sell&limit=7&cursor=40", "/v1/rates/best?currency=XXX&operation=buy",
		} {
			q := question{path: path}
			want, got := asked(t, found, f.keys[0], &q), asked(t, target, f.keys[1], &q)
			if got.StatusCode() != 200 || withoutTime(got.Body()) != withoutTime(want.Body()) {
				t.Errorf("%s: %d and another answer than the node's:\n%.2000s\nthe node:\n%.2000s", path, got.StatusCode(), got.Body(), want.Body())
			}
		}
		for _, one := range []struct {
			key, path string
			status    int
		}{{f.keys[1], bestTarget + "1", 200}, {f.keys[1], bestTarget + "00", 400}, {"", bestTarget, 401}, {unknownKey, bestTarget, 401}} {
			if got := asked(t, target, one.key, &question{path: one.path}).StatusCode(); got != one.status && (quota || one.status != 401) {
				t.Errorf("%s with the key %q: %d, want %d", one.path, one.key, got, one.status)
			}
		}
		if quota {
			checkCounters(t, postgres, target, f.keys)
		}
		busy(t, target, f.keys[1], &question{path: bestTarget})
		dir := postgres.cluster.dir
		ended(t, postgres, target)
		if _, err := os.Stat(dir); err == nil {
			t.Error("the cluster's directory is left behind")
		}
	}
}

// checkCounters wants each request counted once, in both windows, and none admitted beyond a limit.
func checkCounters(t *testing.T, postgres *postgresContender, found *target, keys []string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), connectionString(postgres.cluster.dir))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for _, limits := range []string{"day_limit = 3, minute_limit = 100", "day_limit = 100, day_spent = 0, minute_limit = 3, minute_spent = 0"} {
		if _, err := conn.Exec(t.Context(), "UPDATE accounts SET "+limits+" WHERE id = 2"); err != nil {
			t.Fatal(err)
		}
		statuses := map[int]int{}
		for range 5 {
			statuses[asked(t, found, keys[2], &question{path: bestTarget}).StatusCode()]++
		}
		if statuses[200]+statuses[429] != 5 || statuses[200] < 3 || statuses[200] == 5 && strings.HasPrefix(limits, "day") { // a minute may have begun
			t.Errorf("%s: %v", limits, statuses)
		}
	}
}
