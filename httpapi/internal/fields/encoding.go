package fields

import "bytes"

// qualityMax is the quality value 1, in thousandths.
const qualityMax = 1000

// AcceptsGzip reports whether Accept-Encoding allows gzip, by name or with "*", and does not prefer identity. lines are
// the values of all Accept-Encoding headers. Without lines the result is false.
func AcceptsGzip(lines [][]byte) bool {
	gzip, star, identity := -1, -1, -1
	for _, line := range lines {
		for len(line) > 0 {
			item := line
			if comma := bytes.IndexByte(line, ','); comma >= 0 {
				item, line = line[:comma], line[comma+1:]
			} else {
				line = nil
			}
			coding, quality := codingQuality(item)
			switch {
			case EqualFold(coding, "gzip"), EqualFold(coding, "x-gzip"):
				gzip = max(gzip, quality)
			case string(coding) == "*":
				star = quality
			case EqualFold(coding, "identity"):
				identity = quality
			}
		}
	}
	if gzip < 0 {
		gzip = star
	}
	return gzip > 0 && gzip >= identity
}

// codingQuality splits an item such as "gzip;q=0.5" into the coding and the quality in thousandths. An invalid quality
// counts as 0, which means that the coding is not accepted.
func codingQuality(item []byte) (coding []byte, quality int) {
	semicolon := bytes.IndexByte(item, ';')
	if semicolon < 0 {
		return TrimBlanks(item), qualityMax
	}
	weight := TrimBlanks(item[semicolon+1:])
	if len(weight) < 2 || weight[0]|0x20 != 'q' || weight[1] != '=' {
		return TrimBlanks(item[:semicolon]), 0
	}
	return TrimBlanks(item[:semicolon]), thousandths(weight[2:])
}

// thousandths parses a quality value from 0 to 1 with at most three decimals. It returns 0 for invalid text.
func thousandths(text []byte) int {
	const lengthMax = len("0.000")
	if len(text) == 0 || len(text) > lengthMax || text[0] != '0' && text[0] != '1' || len(text) > 1 && text[1] != '.' {
		return 0
	}
	quality := int(text[0]-'0') * qualityMax
	for place, decimals := 100, text[min(2, len(text)):]; len(decimals) > 0; place, decimals = place/10, decimals[1:] {
		if decimals[0] < '0' || decimals[0] > '9' {
			return 0
		}
		quality += int(decimals[0]-'0') * place
	}
	if quality > qualityMax {
		return 0
	}
	return quality
}
