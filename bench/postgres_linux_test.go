package main

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// checkCounters wants each request counted once, in both windows, and nobody admitted beyond a limit.
func checkCounters(t *testing.T, postgres *postgresContender, found *target, keys []string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), connectionString(postgres.cluster.dir))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	spent := func() (day, minute int) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), "SELECT day_spent, minute_spent FROM accounts WHERE id = 2").Scan(&day, &minute); err != nil {
			t.Fatal(err)
		}
		return day, minute
	}
	ask := func() int {
		response := asked(t, found, keys[2], &question{path: bestTarget})
		return response.StatusCode()
	}
	for range 3 {
		ask()
	}
	if day, minute := spent(); day != 3 || minute < 1 || minute > 3 { // a minute may have begun
		t.Errorf("3 requests are counted as %d and %d", day, minute)
	}
	for limit, set := range map[string]string{
		"day":    "UPDATE accounts SET day_limit = 4, minute_limit = 100 WHERE id = 2",
		"minute": "UPDATE accounts SET day_limit = 100, day_spent = 0, minute_limit = 1, minute_spent = 1, minute = date_trunc('minute', now()) WHERE id = 2",
	} {
		if _, err := conn.Exec(t.Context(), "UPDATE accounts SET day_spent = 3, minute_spent = 0 WHERE id = 2; "+set); err != nil {
			t.Fatal(err)
		}
		statuses := map[int]int{}
		for range 5 {
			statuses[ask()]++
		}
		if statuses[200]+statuses[429] != 5 || statuses[200] > 1 {
			t.Errorf("a limit of the %s, with one request left at most: %v", limit, statuses)
		}
	}
}
