// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"

	viewv1alpha1 "fleetgate.io/fleetgate/pkg/apis/view/v1alpha1"
	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
	"fleetgate.io/fleetgate/pkg/apiserver/fleetview/splice"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// candidate is a member that can have the object of a name.
type candidate struct {
	member string
	// name is that on the member.
	name  string
	query url.Values
}

// candidates returns the members that can have the object of a name, each with its own name for it. In a
// view that qualifies names, the prefix of the name is a member of the view. Members' names may
// contain dots, so more than one can match.
func (x *exchange) candidates(name string) []candidate {
	var all []candidate
	for _, member := range x.members {
		if !x.view.qualified {
			all = append(all, candidate{member: member, name: name})
			continue
		}
		if _, its := x.ownNamespace(member); !its {
			continue
		}
		if own, ok := strings.CutPrefix(name, member+"."); ok && own != "" {
			all = append(all, candidate{member: member, name: own})
		}
	}
	return all
}

// ownNamespace is the member's name of the requested namespace; its is false if the namespace is
// another member's. A view that qualifies names also shows Namespaces as <member>.<name>, and
// clients use that in paths. A real namespace has no dot in its name.
func (x *exchange) ownNamespace(member string) (namespace string, its bool) {
	namespace = x.info.Namespace
	if !x.view.qualified || x.info.Resource == "namespaces" || !strings.Contains(namespace, ".") {
		return namespace, true
	}
	namespace, its = strings.CutPrefix(namespace, member+".")
	return namespace, its && namespace != ""
}

// urlAt is the URL for a member, with the namespace's name on that member.
func (x *exchange) urlAt(member string) url.URL {
	at := *x.url
	if own, its := x.ownNamespace(member); its && own != x.info.Namespace {
		at.Path, at.RawPath = strings.Replace(at.Path, "/namespaces/"+x.info.Namespace+"/", "/namespaces/"+own+"/", 1), ""
	}
	return at
}

// nameFields are the fields of selectors that hold a name as the view shows it: of the object
// itself, and of an event's object.
var nameFields = []string{"metadata.name", "involvedObject.name", "regarding.name"}

// nodeFields hold a node's name on its member. Clients that describe a node use its name in the
// view to select the Pods on it and the events of its kubelet, which have the name as UID.
var nodeFields = []string{"spec.nodeName", "involvedObject.uid"}

// term is one requirement of a field selector.
type term struct {
	fields.Requirement
	// qualified is true if it selects a name with a member prefix.
	qualified bool
}

// termsOf are the requirements of a selector. Whether one is qualified is the same for all members.
func (x *exchange) termsOf(selector fields.Selector) []term {
	var all []term
	for _, r := range selector.Requirements() {
		qualified := slices.Contains(nameFields, r.Field) || slices.Contains(nodeFields, r.Field) && len(x.candidates(r.Value)) > 0
		all = append(all, term{Requirement: r, qualified: qualified})
	}
	return all
}

// unqualified returns the list queries for each member. In a view that qualifies names, a selector
// for one name goes only to the member that it names. If it names none, members still get a
// request, for nothing, because only they know the format of an empty list.
func (x *exchange) unqualified(query url.Values) ([]candidate, error) {
	members, query, err := x.labelled(query)
	if err != nil {
		return nil, err
	}
	selector, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("fieldSelector: %v", err))
	}
	terms := x.termsOf(selector)
	all := make([]candidate, 0, len(members))
	for _, member := range members {
		if _, its := x.ownNamespace(member); !its {
			continue
		}
		if !x.view.qualified || selector.Empty() {
			all = append(all, candidate{member: member, query: query})
		} else if own, some := ownNames(terms, member); some {
			all = append(all, candidate{member: member, query: copied(query, "fieldSelector", own.String())})
		}
	}
	if len(all) > 0 {
		return all, nil
	}
	for _, member := range members {
		all = append(all, candidate{member: member, query: copied(query, "labelSelector", nothing)})
	}
	return all, nil
}

// nothing is a selector that matches no object of any member.
const nothing = viewv1alpha1.LabelMember + ",!" + viewv1alpha1.LabelMember

// labelled returns the members that a label selector allows, and the query without its requirements
// on the member label. That label is on every object that is shown, so clients can select by it,
// but members do not know it.
func (x *exchange) labelled(query url.Values) ([]string, url.Values, error) {
	text := query.Get("labelSelector")
	if !strings.Contains(text, viewv1alpha1.LabelMember) {
		return x.members, query, nil
	}
	requirements, err := labels.ParseToRequirements(text)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("labelSelector: %v", err))
	}
	ours, forMembers := labels.NewSelector(), labels.NewSelector()
	for _, requirement := range requirements {
		if requirement.Key() == viewv1alpha1.LabelMember {
			ours = ours.Add(requirement)
		} else {
			forMembers = forMembers.Add(requirement)
		}
	}
	var members []string
	for _, member := range x.members {
		if ours.Matches(labels.Set{viewv1alpha1.LabelMember: member}) {
			members = append(members, member)
		}
	}
	if len(members) == 0 {
		return x.members, copied(query, "labelSelector", nothing), nil
	}
	return members, copied(query, "labelSelector", forMembers.String()), nil
}

// ownNames returns the selector with names as one member has them. There is none if it selects a
// name that is not the member's. A requirement that a name is not another member's is always true
// and dropped.
func ownNames(terms []term, member string) (own fields.Selector, some bool) {
	var all []fields.Selector
	for _, t := range terms {
		value := t.Value
		if t.qualified {
			name, its := strings.CutPrefix(value, member+".")
			switch {
			case its && name != "":
				value = name
			case t.Operator == selection.NotEquals:
				continue
			default:
				return nil, false
			}
		}
		made := fields.OneTermEqualSelector
		if t.Operator == selection.NotEquals {
			made = fields.OneTermNotEqualSelector
		}
		all = append(all, made(t.Field, value))
	}
	return fields.AndSelectors(all...), true
}

// get writes the object of a name: of the only member that has it, or as rows of all members that have
// it.
func (h *Handler) get(w http.ResponseWriter, r *http.Request, x *exchange) error {
	header, err := memberHeader(r)
	if err != nil {
		return err
	}
	f := h.newFanout(r, x.request.view, x.deadline)
	defer f.close()
	good, missing, err := h.find(r, f, x, header)
	if err != nil {
		return err
	}
	if wantsTable(header) {
		return h.splice(r.Context(), w, x, newTurns(f, good), missing)
	}
	missing.warn(w.Header(), x.deadline, x.what())
	if len(good) > 1 {
		return ambiguous(x, good)
	}
	return h.object(w, x, good[0])
}

// find requests the object from the members that can have it. It returns NotFound only if every
// member has replied, because clients may act on a deletion.
func (h *Handler) find(r *http.Request, f *fanout, x *exchange, header http.Header) ([]*reply, *missingMembers, error) {
	candidates := x.candidates(x.info.Name)
	if len(candidates) == 0 {
		missing := apierrors.NewNotFound(x.groupResource(), x.info.Name)
		missing.ErrStatus.Message += ": this view shows names as <member>.<name>, and you may reach no member of that name in it"
		return nil, nil, missing
	}
	requests := make([]memberRequest, 0, len(candidates))
	for _, c := range candidates {
		inner := x.urlAt(c.member)
		inner.RawQuery = withoutVersions(x.query).Encode()
		if err := renamed(&inner, x.info.Parts, x.info.Name, c.name); err != nil {
			return nil, nil, err
		}
		requests = append(requests, memberRequest{member: c.member, url: &inner, header: header})
	}
	return h.gather(r.Context(), f, x, requests)
}

func withoutVersions(query url.Values) url.Values {
	kept := copied(query)
	for _, key := range notPassed {
		kept.Del(key)
	}
	return kept
}

// renamed replaces a name in a path. The name is the second part after the namespace.
func renamed(path *url.URL, parts []string, from, to string) error {
	if from == to {
		return nil
	}
	tail := strings.Join(parts[1:], "/")
	base, ok := strings.CutSuffix(path.Path, "/"+tail)
	if !ok || len(parts) < 2 || parts[1] != from {
		return apierrors.NewBadRequest("the path cannot be read")
	}
	path.Path, path.RawPath = base+"/"+strings.Join(append([]string{to}, parts[2:]...), "/"), ""
	return nil
}

// ambiguous is the error for a name that several members have, where only one object can be
// returned.
func ambiguous(x *exchange, having []*reply) error {
	var names []string
	for _, reply := range having {
		names = append(names, reply.member)
	}
	err := failure(http.StatusConflict, metav1.StatusReasonConflict,
		fmt.Sprintf("%s %q is on %d members (%s): choose one with its own kubeconfig (gateway kubeconfig MEMBER), "+
			"or use a view that qualifies names", x.info.Resource, x.info.Name, len(names), namesOf(names)))
	err.ErrStatus.Details = &metav1.StatusDetails{Group: x.info.APIGroup, Kind: x.info.Resource, Name: x.info.Name}
	return err
}

// object writes one object with the mark of its member.
func (h *Handler) object(w http.ResponseWriter, x *exchange, of *reply) error {
	content, err := io.ReadAll(io.LimitReader(of, splice.MaxItem+1))
	if err == nil && len(content) > splice.MaxItem {
		err = splice.ErrTooLarge
	}
	marker := &splice.Marker{Member: of.member, Label: viewv1alpha1.LabelMember, Qualified: x.view.qualified}
	if err == nil {
		content, err = marker.One(content)
	}
	if err != nil {
		return badGateway(of.member, err)
	}
	plainHeaders(w.Header())
	_, err = w.Write(content)
	return abortOnError(err)
}

// subresource passes on a subresource from the only member that has the object: its logs, which may
// be followed, its scale or its status.
func (h *Handler) subresource(w http.ResponseWriter, r *http.Request, x *exchange) error {
	owner := *x
	info := *x.info
	info.Subresource, info.Parts = "", x.info.Parts[:2]
	request := *x.request
	request.info = &info
	path := *x.url
	base, ok := strings.CutSuffix(x.url.Path, "/"+strings.Join(x.info.Parts[2:], "/"))
	if !ok {
		return apierrors.NewBadRequest("the path cannot be read")
	}
	path.Path, path.RawPath = base, ""
	request.url = &path
	owner.request, owner.query = &request, url.Values{}
	f := h.newFanout(r, x.request.view, x.deadline)
	good, _, err := h.find(r, f, &owner, http.Header{"Accept": {"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"}})
	f.close()
	if err != nil {
		return err
	}
	if len(good) > 1 {
		return ambiguous(x, good)
	}
	inner := x.urlAt(good[0].member)
	inner.RawQuery = x.query.Encode()
	for _, c := range x.candidates(x.info.Name) {
		if c.member == good[0].member {
			if err := renamed(&inner, x.info.Parts, x.info.Name, c.name); err != nil {
				return err
			}
		}
	}
	h.gateway.ServeMember(w, r, x.request.view, good[0].member, &inner)
	return nil
}

func badGateway(member string, err error) *apierrors.StatusError {
	return failure(http.StatusBadGateway, clustergateway.ReasonBadGateway,
		fmt.Sprintf("the reply of member %q cannot be passed on: %s", member, untrusted.Excerpt(err.Error(), maxText)))
}

func failure(code int32, reason metav1.StatusReason, message string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}

// unread is the error for members that returned nothing, if the reason is not that they have nothing.
func unread(x *exchange, t *missingMembers) error {
	err := apierrors.NewServiceUnavailable(strings.Join(t.unreadReasons(x.deadline), "; ") + "; no other has anything")
	if len(t.unread()) < t.total {
		err.ErrStatus.Code, err.ErrStatus.Reason = http.StatusGatewayTimeout, metav1.StatusReasonTimeout
	}
	return err
}

// abortOnError aborts the response of a caller that has disconnected, because it needs no error.
func abortOnError(err error) error {
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}

// errNoReply means that no member replied to the request.
var errNoReply = errors.New("no member replied")

// groupResource is the requested resource, in errors.
func (x *exchange) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: x.info.APIGroup, Resource: x.info.Resource}
}
