package enrich

import (
	"context"
	"sync"
	"time"
)

// fetchAll reads pages at the same time and gives those that could be read, in the order of their addresses. query is what they are read for.
func fetchAll(ctx context.Context, web Web, urls []string, query string) ([]Page, []Visit) {
	pages, visits := make([]Page, len(urls)), make([]Visit, len(urls))
	var reading sync.WaitGroup
	for i, url := range urls {
		reading.Go(func() {
			v := &visits[i]
			*v = Visit{Kind: KindFetch, URL: url, Query: query, Status: StatusError, Began: time.Now()}
			defer func() {
				_ = recover() // what a page can do to a parser is nothing that may end the process: the status says that it was the gateway's fault
				v.Latency = time.Since(v.Began)
			}()
			p, err := web.Fetch(ctx, url)
			if err == nil {
				pages[i] = p
			}
			v.Text, v.Status = pages[i].Text, statusOf(err == nil && !p.Empty(), p.Cached)
		})
	}
	reading.Wait()
	read := pages[:0]
	for _, p := range pages {
		if !p.Empty() {
			read = append(read, p)
		}
	}
	return read, visits
}
