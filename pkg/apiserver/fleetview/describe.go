// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// describe serves requests about a server as a whole: its kinds, its OpenAPI, its version.
func (h *Handler) describe(w http.ResponseWriter, r *http.Request, x *exchange) error {
	path := strings.TrimSuffix(x.url.Path, "/")
	switch {
	case isDiscovery(path):
		return h.discovery(w, r, x, path)
	case path == openAPIRoot:
		return h.openAPI(w, r, x)
	case strings.HasPrefix(path, "/openapi/"):
		return h.description(w, r, x)
	case slices.Contains([]string{"/version", "/healthz", "/livez", "/readyz"}, path):
		return h.anyOf(w, r, x)
	}
	return failure(http.StatusNotFound, metav1.StatusReasonNotFound,
		fmt.Sprintf("a view of the fleet has no %s: ask one member (gateway kubeconfig MEMBER)", untrusted.Excerpt(path, maxText)))
}

func isDiscovery(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	return parts[0] == "api" && len(parts) <= 2 || parts[0] == "apis" && len(parts) <= 3
}

// description passes a group's OpenAPI on, from a member that has the hash in the list of
// descriptions, which is the most frequent one. Members with another hash redirect, and the
// redirect is not followed. If no member has that hash any more, any description will do.
func (h *Handler) description(w http.ResponseWriter, r *http.Request, x *exchange) error {
	if x.query.Has("hash") {
		if err := h.anyOf(w, r, x); err == nil {
			return nil
		}
		x.query.Del("hash")
	}
	return h.anyOf(w, r, x)
}

// anyOf passes on the first successful reply, in the order of the members' names. It sends
// requests to more and more members at once, since one is usually enough.
func (h *Handler) anyOf(w http.ResponseWriter, r *http.Request, x *exchange) error {
	f := h.newFanout(r, x.request.view, x.deadline)
	defer f.close()
	header := http.Header{"Accept": r.Header.Values("Accept")}
	inner := *x.url
	inner.RawQuery = x.query.Encode()
	var last error
	for begin, some := 0, 1; begin < len(x.members); begin, some = begin+some, min(2*some, h.parallel) {
		var requests []memberRequest
		for _, member := range x.members[begin:min(begin+some, len(x.members))] {
			requests = append(requests, memberRequest{member: member, url: &inner, header: header})
		}
		good, _, err := h.gather(r.Context(), f, x, requests)
		if err != nil {
			last = err
			continue
		}
		return passOn(w, good[0])
	}
	return last
}

// passOn writes a reply unchanged.
func passOn(w http.ResponseWriter, of *reply) error {
	for _, name := range []string{"Content-Type", "Vary"} {
		if values := of.header.Values(name); len(values) > 0 {
			w.Header()[name] = values
		}
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Security-Policy", "sandbox")
	w.WriteHeader(of.code)
	_, err := io.Copy(w, of)
	return abortOnError(err)
}

// openAPIRoot is the path of the list of descriptions.
const openAPIRoot = "/openapi/v3"

// openAPIPaths is the list of descriptions of a server.
type openAPIPaths struct {
	Paths map[string]openAPIPath `json:"paths"`
}

type openAPIPath struct {
	URL string `json:"serverRelativeURL"`
}

// openAPI writes all descriptions that any member has, each in its most frequent version.
func (h *Handler) openAPI(w http.ResponseWriter, r *http.Request, x *exchange) error {
	f := h.newFanout(r, x.request.view, x.deadline)
	defer f.close()
	inner := url.URL{Path: openAPIRoot}
	var requests []memberRequest
	for _, member := range x.members {
		requests = append(requests, memberRequest{member: member, url: &inner, header: http.Header{"Accept": {"application/json"}}})
	}
	good, missing, err := h.gather(r.Context(), f, x, requests)
	if err != nil {
		return err
	}
	votes := map[string]map[string]int{}
	for _, reply := range good {
		var paths openAPIPaths
		if err := reply.read(&paths); err != nil {
			missing.failing, missing.reason = append(missing.failing, reply.member), "their OpenAPI cannot be read"
			continue
		}
		for path, at := range paths.Paths {
			if votes[path] == nil {
				votes[path] = map[string]int{}
			}
			if strings.HasPrefix(at.URL, openAPIRoot+"/") {
				votes[path][at.URL]++
			}
		}
	}
	union := openAPIPaths{Paths: map[string]openAPIPath{}}
	for path, urls := range votes {
		if chosen := mostOf(urls); chosen != "" {
			union.Paths[path] = openAPIPath{URL: chosen}
		}
	}
	missing.warn(w.Header(), x.deadline, "read "+openAPIRoot)
	return document(w, r, "application/json", union)
}

// mostOf is the most frequent value; of equals the first in order.
func mostOf(votes map[string]int) string {
	var chosen string
	for one, n := range votes {
		if most := votes[chosen]; chosen == "" || n > most || n == most && one < chosen {
			chosen = one
		}
	}
	return chosen
}

// document writes content that is immutable for its hash.
func document(w http.ResponseWriter, r *http.Request, contentType string, content any) error {
	text, err := json.Marshal(content)
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("encoding the response: %w", err))
	}
	sum := sha512.Sum512(text)
	tag := `"` + strings.ToUpper(hex.EncodeToString(sum[:])) + `"`
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Etag", tag)
	h.Add("Vary", "Accept")
	h.Set("Cache-Control", "private")
	h.Set("X-Content-Type-Options", "nosniff")
	if slices.Contains(r.Header.Values("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	_, err = w.Write(text)
	return abortOnError(err)
}
