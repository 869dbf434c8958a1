package main

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// curvePercentiles are the points of a curve: even steps, then a few for each further nine.
func curvePercentiles() []float64 {
	return []float64{0, 10, 20, 30, 40, 50, 60, 70, 75, 80, 85, 90, 92.5, 95, 97.5, 98, 99, 99.25, 99.5, 99.75, 99.8, 99.9,
		99.95, 99.975, 99.99, 99.995, 99.999, 99.9995, 99.9999, 100}
}

// curvePoints reads a curve from a histogram of nanoseconds. Percentiles beyond which less than one answer lies are left out:
// all of them would be the slowest one, which 100 shows, and the curve would look as if it were known there.
func curvePoints(h *hdrhistogram.Histogram) []point {
	if h == nil || h.TotalCount() == 0 {
		return nil
	}
	const almostOne = 1 - 1e-6 // 100-99.9 is a little less than 0.1
	var percentiles []float64
	for _, p := range curvePercentiles() {
		if p == 100 || (100-p)*float64(h.TotalCount()) > 100*almostOne {
			percentiles = append(percentiles, p)
		}
	}
	points := make([]point, len(percentiles))
	for i, nanoseconds := range h.ValueAtPercentilesSlice(percentiles) {
		points[i] = point{Percentile: percentiles[i], Latency: time.Duration(nanoseconds)}
	}
	return points
}
