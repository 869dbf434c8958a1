// Package data serves the rates as files, for spreadsheets, scripts and feed readers. Requests need no API key and do
// not count against a quota; they have the limits of web pages (Config.Admit). Shared caches may store the files:
//
//	path                      file
//	/data/latest.json, .csv   all published rates
//	/data/history.csv         the daily history of the last 366 days
//	/data/history/2025.csv    the history of a calendar year
//	/feeds/usd.atom           the newest change of each rate of a currency (small letters)
//	/feeds/popular.atom       the same for an institution
//
// The files are not below /v1, because the API ignores Accept. They are generated on request: at most once a second,
// history files at most once a minute, and past years at most once an hour. An unchanged file keeps the ETag and is not
// compressed again. All responses share one copy of a file. A year of 80 rates takes 2.5 MB, or 0.2 MB compressed.
package data
