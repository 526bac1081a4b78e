package httpapi

import (
	"path"
	"strings"
	"sync"

	"hydrallm/docs"
	"hydrallm/docs/site"
	"hydrallm/services/ingress/internal/ui"
	"hydrallm/shared/fault"
)

const pathDocs = "/docs"

// documents are the pages of the documents. Each is made when somebody first asks for it.
type documents struct {
	site *site.Site
	kept sync.Map // path of a file that exists -> *ui.File
}

// docs serves the documents, which are everybody's to read.
func (a *API) docs(x *exchange, at string) error {
	if !a.Docs {
		return x.unknown(at)
	}
	x.route = routeDocs
	if err := x.allow(get); err != nil {
		return err
	}
	if at == pathDocs {
		return x.toFolder("docs/")
	}
	file, err := a.documents.file(strings.TrimPrefix(at, pathDocs+"/"))
	switch {
	case err != nil:
		return err
	case file == nil:
		return fault.New(fault.NotFound, "There is no such page: the documents begin at "+pathDocs+"/")
	}
	x.file(file)
	return nil
}

// file gives a file of the site, nil when there is none.
func (d *documents) file(name string) (*ui.File, error) {
	if name == "" || strings.HasSuffix(name, "/") {
		name += "index.html"
	}
	if kept, ok := d.kept.Load(name); ok {
		return kept.(*ui.File), nil //nolint:forcetypeassert // nothing else is stored
	}
	body, err := d.site.File(name)
	if body == nil || err != nil {
		return nil, err
	}
	file, err := ui.NewFile(path.Base(name), body, false)
	if err != nil {
		return nil, err
	}
	kept, _ := d.kept.LoadOrStore(name, file)
	return kept.(*ui.File), nil //nolint:forcetypeassert // nothing else is stored
}

func newDocuments() *documents { return &documents{site: site.New(docs.Files)} }
