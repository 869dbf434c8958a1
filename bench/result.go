package main

import "time"

// report is everything that a run found: what JSON holds, and what the text is made of.
type report struct {
	Started time.Time     `json:"started"`
	Took    time.Duration `json:"tookNanoseconds"`
	Commit  string        `json:"commit"`
	Changed bool          `json:"changed"` // the tree had changes that no commit holds
	Machine machine       `json:"machine"`
	Options runOptions    `json:"options"`
	Goals   []goal        `json:"goals"`
	Curves  []curve       `json:"curves,omitempty"`
	Skipped []skip        `json:"skipped,omitempty"`
}

// machine is where it ran.
type machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Memory int64  `json:"memoryBytes"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
}

// runOptions are what the figures depend on.
type runOptions struct {
	Rounds      int           `json:"rounds"`
	Measure     time.Duration `json:"measureNanoseconds"`
	Warmup      time.Duration `json:"warmupNanoseconds"`
	Connections int           `json:"connections"`
	Accounts    int           `json:"accounts"`
	Seed        uint64        `json:"seed"`
}

// goal is one of F1 to F12 with its measures.
type goal struct {
	ID       string    `json:"id"` // F1
	Title    string    `json:"title"`
	Measures []measure `json:"measures"`
}

// measure is one figure. The figures of a comparison are ratios within one run: they mean something on a noisy machine, while the
// absolute ones (Absolute) only tell of what order things are.
type measure struct {
	Name string `json:"name"` // "requests/s, node to bare"
	Unit string `json:"unit"` // "×", "allocations", "ms", "B", "/s"
	// Value is the median of Rounds, or the one figure that there is.
	Value  float64   `json:"value"`
	Rounds []float64 `json:"rounds,omitempty"`
	// Want is the goal's bound. AtLeast tells the side. Zero with Free: there is no bound.
	Want    float64 `json:"want"`
	AtLeast bool    `json:"atLeast"`
	Free    bool    `json:"free,omitempty"`
	// Absolute are the sides' own medians, by name: requests a second, or nanoseconds.
	Absolute map[string]float64 `json:"absolute,omitempty"`
	// AbsoluteUnit is the unit of Absolute and Sides: "/s", "ns", "B", ...
	AbsoluteUnit string `json:"absoluteUnit,omitempty"`
	// Sides are the figures behind Absolute round by round, for those who compare two reports; may be left out.
	Sides map[string][]float64 `json:"sides,omitempty"`
	// Limit says what limits it, where it falls short of the bound.
	Limit string `json:"limit,omitempty"`
}

// met tells whether the figure keeps its bound.
func (m *measure) met() bool {
	return m.Free || m.AtLeast && m.Value >= m.Want || !m.AtLeast && m.Value <= m.Want
}

// curve is a distribution of latencies.
type curve struct {
	Goal   string  `json:"goal"`
	Name   string  `json:"name"` // node at 12,000/s
	Points []point `json:"points"`
}

// point of a curve: at most this long took this share of all.
type point struct {
	Percentile float64       `json:"percentile"` // 99.9
	Latency    time.Duration `json:"nanoseconds"`
}

// skip is what was not measured, and why.
type skip struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}
