package workbook

const zipSignature = "PK"

func openXLSX(body []byte) (*Book, error) { return nil, damaged("XLSX is not read yet") }
