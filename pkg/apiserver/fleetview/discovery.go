// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/lru"
)

const (
	// maxDocument bounds what is read of a member's discovery; a cluster with hundreds of
	// CRDs has a few hundred kilobytes.
	maxDocument = 8 << 20
	// knownDocuments is how many different ones are held; members of one version with the
	// same CRDs have the same.
	knownDocuments = 64
	// knownMembers is how many members' last ones are known by their tag.
	knownMembers = 8192

	// askedDiscovery is the form that every member of a supported version has.
	askedDiscovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," +
		"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
)

// documents are the members' discovery documents by their content, so that a thousand
// members alike are one. A member is always asked, as its caller: what is spared is the way
// of the bytes, and reading them.
type documents struct {
	// mu guards both.
	mu sync.Mutex
	// tags maps member and path to a tag; byContent a hash to what is in the document.
	tags, byContent *lru.Cache
}

type tag struct {
	etag    string
	content [sha256.Size]byte
}

func newDocuments() *documents {
	return &documents{tags: lru.New(knownMembers), byContent: lru.New(knownDocuments)}
}

// known is a member's tag, and the document of it, if both are known.
func (d *documents) known(key string) (string, *apidiscoveryv2.APIGroupDiscoveryList) {
	d.mu.Lock()
	defer d.mu.Unlock()
	found, ok := d.tags.Get(key)
	if !ok {
		return "", nil
	}
	document, ok := d.byContent.Get(found.(tag).content)
	if !ok {
		return "", nil
	}
	return found.(tag).etag, document.(*apidiscoveryv2.APIGroupDiscoveryList)
}

// read returns the document of a content, which is decoded once.
func (d *documents) read(key, etag string, content []byte) (*apidiscoveryv2.APIGroupDiscoveryList, error) {
	sum := sha256.Sum256(content)
	d.mu.Lock()
	found, ok := d.byContent.Get(sum)
	d.mu.Unlock()
	document, _ := found.(*apidiscoveryv2.APIGroupDiscoveryList)
	if !ok {
		document = &apidiscoveryv2.APIGroupDiscoveryList{}
		if err := json.Unmarshal(content, document); err != nil {
			return nil, err
		}
		if document.Kind != "APIGroupDiscoveryList" {
			return nil, errors.New("it is not in the aggregated form")
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.byContent.Add(sum, document)
	if etag != "" {
		d.tags.Add(key, tag{etag: etag, content: sum})
	}
	return document, nil
}

// discovery answers with the kinds that a member has, in the form that is asked for.
func (h *Handler) discovery(w http.ResponseWriter, r *http.Request, x *exchange, path string) error {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	all, t, err := h.discover(r, x, "/"+parts[0])
	if err != nil {
		return err
	}
	t.warn(w.Header(), x.deadline, "read "+path)
	groups := union(all)
	if len(parts) == 1 {
		if version := aggregatedVersion(r); version != "" {
			return document(w, r, "application/json;g=apidiscovery.k8s.io;v="+version+";as=APIGroupDiscoveryList", &apidiscoveryv2.APIGroupDiscoveryList{
				TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/" + version}, Items: groups,
			})
		}
	}
	legacy := legacyForm(groups, parts)
	if legacy == nil {
		return apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{}, "", "the server could not find the requested resource", 0, true)
	}
	return document(w, r, "application/json", legacy)
}

// aggregatedVersion is the version of the aggregated form that the caller takes, or empty.
func aggregatedVersion(r *http.Request) string {
	for _, clause := range strings.Split(strings.Join(r.Header.Values("Accept"), ","), ",") {
		kind, parameters, err := mime.ParseMediaType(strings.TrimSpace(clause))
		if err == nil && kind == "application/json" && parameters["g"] == "apidiscovery.k8s.io" && parameters["as"] == "APIGroupDiscoveryList" &&
			slices.Contains([]string{"v2", "v2beta1"}, parameters["v"]) {
			return parameters["v"]
		}
	}
	return ""
}

// discover asks all members for their kinds. Those that say nothing lack them.
func (h *Handler) discover(r *http.Request, x *exchange, path string) ([]*apidiscoveryv2.APIGroupDiscoveryList, *tally, error) {
	f := h.newFanout(r, x.request.view, x.deadline)
	defer f.close()
	known := map[string]*apidiscoveryv2.APIGroupDiscoveryList{}
	var questions []question
	for _, member := range x.members {
		header := http.Header{"Accept": {askedDiscovery}}
		if etag, document := h.documents.known(member + path); document != nil {
			known[member] = document
			header.Set("If-None-Match", etag)
		}
		questions = append(questions, question{member: member, url: &url.URL{Path: path}, header: header})
	}
	t := &tally{asked: len(questions)}
	var all []*apidiscoveryv2.APIGroupDiscoveryList
	for _, reply := range f.ask(r.Context(), questions) {
		document, err := h.documentOf(r.Context(), reply, path, known[reply.member])
		switch {
		case r.Context().Err() != nil:
			return nil, nil, r.Context().Err()
		case err == nil:
			all = append(all, document)
		case reply.code == http.StatusForbidden, reply.code >= 500, reply.code == http.StatusTooManyRequests:
			t.without(reply)
		default:
			t.failing, t.why = append(t.failing, reply.member), printable(err.Error())
		}
	}
	if len(all) > 0 {
		return all, t, nil
	}
	if len(t.failing) > 0 {
		t.failure = &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusBadGateway, Reason: reasonBadGateway, Message: t.why}
	}
	return nil, nil, x.none(t)
}

func (h *Handler) documentOf(ctx context.Context, reply *reply, path string, known *apidiscoveryv2.APIGroupDiscoveryList) (*apidiscoveryv2.APIGroupDiscoveryList, error) {
	select {
	case <-reply.begun:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	switch {
	case reply.err != nil:
		return nil, reply.err
	case reply.code == http.StatusNotModified && known != nil:
		return known, nil
	case reply.code != http.StatusOK:
		return nil, fmt.Errorf("it answered %d", reply.code)
	}
	content, err := io.ReadAll(io.LimitReader(reply, maxDocument))
	if err != nil {
		return nil, err
	}
	document, err := h.documents.read(reply.member+path, reply.header.Get("Etag"), content)
	if err != nil {
		return nil, fmt.Errorf("its discovery cannot be read: %w", err)
	}
	return document, nil
}
