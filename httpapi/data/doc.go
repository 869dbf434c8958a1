// Package data serves the rates as files, for spreadsheets, scripts and feed readers. They need no account, count
// against the limit of pages and not against a quota, and caches may share them:
//
//	path                      file
//	/data/latest.json, .csv   all published rates
//	/data/history.csv         the daily history of the last 366 days
//	/data/history/2025.csv    the history of a calendar year
//	/feeds/usd.atom, .json    the newest change of each rate of a currency (small letters)
//	/feeds/popular.atom       the same of an institution
//
// The files are beside /v1, because the API ignores Accept. They are made when they are asked for, at most once in a
// second, those of the history at most once in a minute, and past years once in an hour. A file that did not change
// keeps its ETag and is not compressed again. Memory is bounded, and responses share a file. A year of 80 rates has
// 2.5 MB, and 0.2 MB compressed.
package data
