package workbook

const oleSignature = "\xD0\xCF\x11\xE0"

func openXLS(body []byte) (*Book, error) { return nil, damaged("XLS is not read yet") }
