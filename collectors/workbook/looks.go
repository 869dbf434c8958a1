package workbook

func looksLike(body []byte) string { return "something else" }
