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

// maxReview limits a question, and an answer to it, in bytes.
const maxReview = 1 << 20

// reviewLimits limit the decoded size of a small reply: three bytes can setMembers a hundred. A user
// with a thousand rules gets 20,000 values.
var reviewLimits = untrusted.Limits{Bytes: maxReview, Values: 50_000, Depth: 20}

// review answers callers' questions about themselves: who they are, and what they may do. An action
// is allowed if any member allows it.
func (h *Handler) review(w http.ResponseWriter, r *http.Request, x *exchange) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxReview+1))
	if err != nil || len(body) > maxReview {
		return apierrors.NewBadRequest("the body cannot be read, or is too large")
	}
	header := http.Header{"Accept": {"application/json"}, "Content-Type": r.Header.Values("Content-Type")}
	questions, err := x.selfQuestions(header, body)
	if err != nil {
		return err
	}
	f := h.newFanout(r, x.request.view, x.deadline)
	defer f.close()
	good, t, err := h.gather(r.Context(), f, x, questions)
	if err != nil {
		return err
	}
	t.warn(w.Header(), x.deadline, x.what())
	var result any
	switch x.info.Resource {
	case "selfsubjectaccessreviews":
		result, err = mayDo(good, t.total)
	case "selfsubjectrulesreviews":
		result, err = rulesOf(good, t.total)
	default:
		return passOn(w, good[0])
	}
	if err != nil {
		return err
	}
	text, err := json.Marshal(result)
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("encoding the answer: %w", err))
	}
	plainHeaders(w.Header())
	w.WriteHeader(http.StatusCreated)
	_, err = w.Write(text)
	return ignoreGone(err)
}

// selfQuestions returns the requests to members. In a view that qualifies names, a question about
// one object goes to the member in its name.
func (x *exchange) selfQuestions(header http.Header, body []byte) ([]question, error) {
	inner := *x.url
	inner.RawQuery = x.query.Encode()
	of, aboutOne := x.accessReviewOf(body)
	if !aboutOne {
		var all []question
		for _, member := range x.members {
			all = append(all, question{member: member, url: &inner, header: header, body: body})
		}
		return all, nil
	}
	header = header.Clone()
	header.Set("Content-Type", "application/json")
	var all []question
	for _, c := range x.named(of.Spec.ResourceAttributes.Name) {
		own := of.DeepCopy()
		own.Spec.ResourceAttributes.Name = c.name
		text, err := json.Marshal(own)
		if err != nil {
			return nil, apierrors.NewInternalError(fmt.Errorf("encoding the question: %w", err))
		}
		all = append(all, question{member: c.member, url: &inner, header: header, body: text})
	}
	return all, nil
}

// accessReviewOf returns the question about one object with a qualified name; ok is false for any
// other question. Members refuse what cannot be decoded here.
func (x *exchange) accessReviewOf(body []byte) (of authorizationv1.SelfSubjectAccessReview, aboutOne bool) {
	if !x.view.qualified || x.info.Resource != "selfsubjectaccessreviews" {
		return of, false
	}
	_, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, &of)
	attributes := of.Spec.ResourceAttributes
	return of, err == nil && attributes != nil && len(x.named(attributes.Name)) > 0
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

func mayDo(replies []*reply, asked int) (*authorizationv1.SelfSubjectAccessReview, error) {
	var result *authorizationv1.SelfSubjectAccessReview
	allowing := 0
	var malformed error
	for _, reply := range replies {
		var said authorizationv1.SelfSubjectAccessReview
		if err := reply.read(&said); err != nil {
			malformed = err
			continue
		}
		if said.Status.Allowed {
			allowing++
		}
		if result == nil {
			result = &said
		}
	}
	if result == nil {
		return nil, malformed
	}
	result.Status = authorizationv1.SubjectAccessReviewStatus{
		Allowed: allowing > 0, Reason: fmt.Sprintf("%d of %d members allow it", allowing, asked),
	}
	return result, nil
}

// rulesOf returns the rules of all members without duplicates.
func rulesOf(replies []*reply, asked int) (*authorizationv1.SelfSubjectRulesReview, error) {
	var result *authorizationv1.SelfSubjectRulesReview
	known := map[string]bool{}
	isNew := func(rule any) bool {
		text, err := json.Marshal(rule)
		before := known[string(text)]
		known[string(text)] = true
		return err == nil && !before
	}
	var malformed error
	for _, reply := range replies {
		var said authorizationv1.SelfSubjectRulesReview
		if err := reply.read(&said); err != nil {
			malformed = err
			continue
		}
		if result == nil {
			result = &authorizationv1.SelfSubjectRulesReview{TypeMeta: said.TypeMeta, ObjectMeta: said.ObjectMeta, Spec: said.Spec}
			result.Status.Incomplete = len(replies) < asked
		}
		for _, rule := range said.Status.ResourceRules {
			if isNew(rule) {
				result.Status.ResourceRules = append(result.Status.ResourceRules, rule)
			}
		}
		for _, rule := range said.Status.NonResourceRules {
			if isNew(rule) {
				result.Status.NonResourceRules = append(result.Status.NonResourceRules, rule)
			}
		}
		result.Status.Incomplete = result.Status.Incomplete || said.Status.Incomplete
	}
	if result == nil {
		return nil, malformed
	}
	result.Status.Incomplete = result.Status.Incomplete || malformed != nil
	return result, nil
}
