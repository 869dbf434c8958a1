// Package data serves the rates as files, for spreadsheets, scripts and feed readers. They need no account. They count
// against the limit of pages, not against a quota. Caches may share them:
//
//	path                      file
//	/data/latest.json, .csv   all published rates
//	/data/history.csv         the daily history of the last 366 days
//	/data/history/2025.csv    the history of a calendar year
//	/feeds/usd.atom           the newest change of each rate of a currency (small letters)
//	/feeds/popular.atom       the same for an institution
//
// The files are beside /v1, because the API ignores Accept. They are generated on request: at most once a second,
// history files at most once a minute, and past years at most once an hour. An unchanged file keeps its ETag and is not
// compressed again. Memory is bounded, and responses share a file. A year of 80 rates takes 2.5 MB, or 0.2 MB
// compressed.
package data
