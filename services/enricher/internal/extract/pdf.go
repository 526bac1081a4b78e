package extract

import "hydrallm/services/enricher/internal/page"

func readPDF(_ *page.Document, _ []byte) {}
