package extract

import (
	"strings"

	"hydrallm/services/enricher/internal/extract/pdftext"
	"hydrallm/services/enricher/internal/page"
)

// readPDF reads the text of a PDF. One that panics has none.
func readPDF(doc *page.Document, body []byte) {
	defer func() {
		if recover() != nil {
			doc.Text = ""
		}
	}()
	pdf, err := pdftext.Read(body)
	if err != nil {
		return
	}
	doc.Title, doc.Text = pdf.Title, pdf.Text
	if created := strings.TrimPrefix(pdf.Created, "D:"); len(created) >= 8 {
		doc.Published = dateIn(created[:8])
	}
	if doc.Published.IsZero() {
		doc.Published = dateIn(pdf.Text)
	}
}
