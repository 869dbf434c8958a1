package collectors

import (
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

func TestS15_SourcesFailing(t *testing.T) {
	now := time.Date(2026, 6, 17, 16, 0, 0, 0, time.UTC)
	c := New(Config{Clock: func() time.Time { return now }})
	for range 8 {
		c.runners = append(c.runners, &runner{health: Health{State: Never}})
	}
	set := func(states ...State) {
		for i, state := range states {
			c.runners[i].health.State = state
		}
		c.judge(now)
	}
	for _, test := range []struct {
		states []State
		want   string
	}{
		{nil, engine.ConditionOK},
		{[]State{OK, OK, OK, OK, OK, Partial, Disabled, Never}, engine.ConditionOK},
		{[]State{OK, OK, OK, OK, OK, Failing, Disabled, Never}, engine.ConditionOK}, // one of six is the usual
		{[]State{OK, OK, OK, OK, Held, Failing, Disabled, Never}, "some_failing"},
		{[]State{Failing, Held, Resting, Failing, Failing, Failing, Disabled, Never}, "all_failing"},
		{[]State{OK, Held, Resting, Failing, Failing, Failing, Disabled, Never}, "some_failing"},
		{[]State{OK, OK, OK, OK, OK, OK, OK, OK}, engine.ConditionOK},
	} {
		set(test.states...)
		if got := c.Condition(); got.Name != "sources" || got.State != test.want || got.Down {
			t.Errorf("%v: %+v, want %s", test.states, got, test.want)
		}
	}
}
