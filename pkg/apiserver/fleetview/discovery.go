// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

const (
	// maxDocument limits how much of a member's discovery is read. A cluster with hundreds of CRDs
	// has a few hundred kilobytes.
	maxDocument = 8 << 20
	// discoveryAccept is the format that every supported version of Kubernetes serves.
	discoveryAccept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," +
		"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
)

// discovery writes the kinds that any member has, in the requested format.
func (h *Handler) discovery(w http.ResponseWriter, r *http.Request, x *exchange, path string) error {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	all, missing, err := h.discover(r, x, "/"+parts[0])
	if err != nil {
		return err
	}
	missing.warn(w.Header(), x.deadline, "read "+path)
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

// aggregatedVersion is the version of aggregated discovery that the caller accepts, or empty.
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

// discover requests the kinds of all members. The result lacks the kinds of members that do not
// reply.
func (h *Handler) discover(r *http.Request, x *exchange, path string) ([]*apidiscoveryv2.APIGroupDiscoveryList, *missingMembers, error) {
	f := h.newFanout(r, x.request.view, x.deadline)
	defer f.close()
	known := map[string]kept{}
	var requests []memberRequest
	for _, member := range x.members {
		header := http.Header{"Accept": {discoveryAccept}}
		if etag, last := h.documents.known(member + path); last.document != nil {
			known[member] = last
			header.Set("If-None-Match", etag)
		}
		requests = append(requests, memberRequest{member: member, url: &url.URL{Path: path}, header: header})
	}
	missing := &missingMembers{total: len(requests)}
	var all distinct
	for _, reply := range f.send(r.Context(), requests) {
		one, err := h.documentOf(r.Context(), reply, path, known[reply.member])
		if err == nil {
			err = all.add(one)
		}
		switch {
		case r.Context().Err() != nil:
			return nil, nil, r.Context().Err()
		case err == nil:
		case reply.code == http.StatusForbidden, reply.code >= 500, reply.code == http.StatusTooManyRequests:
			missing.without(reply)
		default:
			missing.failing, missing.reason = append(missing.failing, reply.member), untrusted.Excerpt(err.Error(), maxText)
		}
	}
	if len(all.documents) > 0 {
		return all.documents, missing, nil
	}
	if len(missing.failing) > 0 {
		missing.failure = &failure(http.StatusBadGateway, clustergateway.ReasonBadGateway, missing.reason).ErrStatus
	}
	return nil, nil, x.none(missing)
}

func (h *Handler) documentOf(ctx context.Context, reply *reply, path string, known kept) (kept, error) {
	select {
	case <-reply.begun:
	case <-ctx.Done():
		return kept{}, ctx.Err()
	}
	switch {
	case reply.err != nil:
		return kept{}, reply.err
	case reply.code == http.StatusNotModified && known.document != nil:
		return known, nil
	case reply.code != http.StatusOK:
		return kept{}, fmt.Errorf("it replied with %d", reply.code)
	}
	content, err := io.ReadAll(io.LimitReader(reply, maxDocument))
	if err != nil {
		return kept{}, err
	}
	document, err := h.documents.read(reply.member+path, reply.header.Get("Etag"), content)
	if err != nil {
		return kept{}, fmt.Errorf("its discovery cannot be read: %w", err)
	}
	return document, nil
}
