// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// maxReview limits a review, and the reply to it, in bytes.
const maxReview = 1 << 20

// reviewLimits limit the decoded size of a small reply: three bytes can become a hundred. A user
// with a thousand rules gets 20,000 values.
var reviewLimits = untrusted.Limits{Bytes: maxReview, Values: 50_000, Depth: 20}

// review serves callers' reviews of themselves: who they are, and what they may do. An action is
// allowed if any member allows it.
func (h *Handler) review(w http.ResponseWriter, r *http.Request, x *exchange) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxReview+1))
	if err != nil || len(body) > maxReview {
		return apierrors.NewBadRequest("the body cannot be read, or is too large")
	}
	header := http.Header{"Accept": {"application/json"}, "Content-Type": r.Header.Values("Content-Type")}
	requests, err := x.reviewRequests(header, body)
	if err != nil {
		return err
	}
	f := h.newFanout(r, x.request.view, x.deadline)
	defer f.close()
	good, missing, err := h.gather(r.Context(), f, x, requests)
	if err != nil {
		return err
	}
	missing.warn(w.Header(), x.deadline, x.what())
	var result any
	switch x.info.Resource {
	case "selfsubjectaccessreviews":
		result, err = accessOf(good, missing.total)
	case "selfsubjectrulesreviews":
		result, err = rulesOf(good, missing.total)
	default:
		return passOn(w, good[0])
	}
	if err != nil {
		return err
	}
	text, err := json.Marshal(result)
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("encoding the response: %w", err))
	}
	plainHeaders(w.Header())
	w.WriteHeader(http.StatusCreated)
	_, err = w.Write(text)
	return abortOnError(err)
}

// reviewRequests returns the requests to members. In a view that qualifies names, a review of access to
// one object goes to the member in its name.
func (x *exchange) reviewRequests(header http.Header, body []byte) ([]memberRequest, error) {
	inner := *x.url
	inner.RawQuery = x.query.Encode()
	of, aboutOne := x.accessReviewOf(body)
	if !aboutOne {
		var all []memberRequest
		for _, member := range x.members {
			all = append(all, memberRequest{member: member, url: &inner, header: header, body: body})
		}
		return all, nil
	}
	header = header.Clone()
	header.Set("Content-Type", "application/json")
	var all []memberRequest
	for _, c := range x.candidates(of.Spec.ResourceAttributes.Name) {
		own := of.DeepCopy()
		own.Spec.ResourceAttributes.Name = c.name
		text, err := json.Marshal(own)
		if err != nil {
			return nil, apierrors.NewInternalError(fmt.Errorf("encoding the review: %w", err))
		}
		all = append(all, memberRequest{member: c.member, url: &inner, header: header, body: text})
	}
	return all, nil
}

// accessReviewOf returns the review of access to one object with a qualified name; aboutOne is false
// for any other review. Members refuse what cannot be decoded here.
func (x *exchange) accessReviewOf(body []byte) (of authorizationv1.SelfSubjectAccessReview, aboutOne bool) {
	if !x.view.qualified || x.info.Resource != "selfsubjectaccessreviews" {
		return of, false
	}
	_, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, &of)
	attributes := of.Spec.ResourceAttributes
	return of, err == nil && attributes != nil && len(x.candidates(attributes.Name)) > 0
}

// read decodes a small reply.
func (r *reply) read(into any) error {
	content, err := io.ReadAll(io.LimitReader(r, maxReview+1))
	if err == nil {
		err = untrusted.UnmarshalJSON(content, reviewLimits, into)
	}
	if err != nil {
		return badGateway(r.member, err)
	}
	return nil
}

// decode returns the replies that can be decoded, and the error of another one.
func decode[T any](replies []*reply) (all []T, malformed error) {
	for _, reply := range replies {
		var one T
		if err := reply.read(&one); err != nil {
			malformed = err
			continue
		}
		all = append(all, one)
	}
	return all, malformed
}

func accessOf(replies []*reply, members int) (*authorizationv1.SelfSubjectAccessReview, error) {
	all, malformed := decode[authorizationv1.SelfSubjectAccessReview](replies)
	if len(all) == 0 {
		return nil, malformed
	}
	allowing := 0
	for _, one := range all {
		if one.Status.Allowed {
			allowing++
		}
	}
	all[0].Status = authorizationv1.SubjectAccessReviewStatus{
		Allowed: allowing > 0, Reason: fmt.Sprintf("%d of %d members allow it", allowing, members),
	}
	return &all[0], nil
}

// rulesOf returns the rules of all members without duplicates.
func rulesOf(replies []*reply, members int) (*authorizationv1.SelfSubjectRulesReview, error) {
	all, malformed := decode[authorizationv1.SelfSubjectRulesReview](replies)
	if len(all) == 0 {
		return nil, malformed
	}
	result := &authorizationv1.SelfSubjectRulesReview{TypeMeta: all[0].TypeMeta, ObjectMeta: all[0].ObjectMeta, Spec: all[0].Spec}
	result.Status.Incomplete = len(all) < members
	known := map[string]bool{}
	isNew := func(rule any) bool {
		text, err := json.Marshal(rule)
		before := known[string(text)]
		known[string(text)] = true
		return err == nil && !before
	}
	for _, one := range all {
		for _, rule := range one.Status.ResourceRules {
			if isNew(rule) {
				result.Status.ResourceRules = append(result.Status.ResourceRules, rule)
			}
		}
		for _, rule := range one.Status.NonResourceRules {
			if isNew(rule) {
				result.Status.NonResourceRules = append(result.Status.NonResourceRules, rule)
			}
		}
		result.Status.Incomplete = result.Status.Incomplete || one.Status.Incomplete
	}
	return result, nil
}
