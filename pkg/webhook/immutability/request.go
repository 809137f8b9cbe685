// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability

import (
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/authentication/user"
)

// A Request is a review, decoded once for all expressions.
type Request struct {
	operation  admissionv1.Operation
	resource   schema.GroupVersionResource
	kind       schema.GroupVersionKind
	namespace  string
	name       string
	dryRun     bool
	object     *unstructured.Unstructured
	oldObject  *unstructured.Unstructured
	attributes *admission.VersionedAttributes
	// review is the variable request of expressions.
	review *admissionv1.AdmissionRequest
}

// NewRequest decodes a review. The error says which part of it is no object.
func NewRequest(review *admissionv1.AdmissionRequest) (*Request, error) {
	object, err := objectOf(review.Object)
	if err != nil {
		return nil, fmt.Errorf("reading the object: %w", err)
	}
	old, err := objectOf(review.OldObject)
	if err != nil {
		return nil, fmt.Errorf("reading the old object: %w", err)
	}
	if object == nil && old == nil {
		return nil, fmt.Errorf("a request %s without any object", review.Operation)
	}
	r := &Request{
		operation: review.Operation,
		resource:  schema.GroupVersionResource(review.Resource),
		kind:      schema.GroupVersionKind(review.Kind),
		namespace: review.Namespace, name: review.Name,
		dryRun: review.DryRun != nil && *review.DryRun,
		object: object, oldObject: old,
	}
	extra := map[string][]string{}
	for key, values := range review.UserInfo.Extra {
		extra[key] = values
	}
	attributes := admission.NewAttributesRecord(asObject(object), asObject(old), r.kind, r.namespace, r.name, r.resource, review.SubResource,
		admission.Operation(review.Operation), nil, r.dryRun,
		&user.DefaultInfo{Name: review.UserInfo.Username, UID: review.UserInfo.UID, Groups: review.UserInfo.Groups, Extra: extra})
	r.attributes = versioned(attributes, object, old, r.kind)
	r.review = plugincel.CreateAdmissionRequest(attributes, metav1.GroupVersionResource(r.resource), metav1.GroupVersionKind(r.kind))
	return r, nil
}

// current is the new object, or the old one if it is being deleted.
func (r *Request) current() *unstructured.Unstructured {
	if r.object != nil {
		return r.object
	}
	return r.oldObject
}

// about is the request with another object.
func (r *Request) about(object *unstructured.Unstructured) *Request {
	other := *r
	other.object, other.oldObject = object, nil
	other.attributes = versioned(r.attributes.Attributes, object, nil, r.kind)
	return &other
}

func versioned(attributes admission.Attributes, object, old *unstructured.Unstructured, kind schema.GroupVersionKind) *admission.VersionedAttributes {
	v := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: kind}
	if object != nil {
		v.VersionedObject = admission.NewLazyObject(object)
	}
	if old != nil {
		v.VersionedOldObject = admission.NewLazyObject(old)
	}
	return v
}

func objectOf(raw runtime.RawExtension) (*unstructured.Unstructured, error) {
	if len(raw.Raw) == 0 || string(raw.Raw) == "null" {
		return nil, nil
	}
	object := &unstructured.Unstructured{}
	// Its own UnmarshalJSON decodes everything twice, to find out whether it is a list.
	if err := json.Unmarshal(raw.Raw, &object.Object); err != nil {
		return nil, err
	}
	if object.GetKind() == "" {
		return nil, errors.New("it has no kind")
	}
	return object, nil
}

// asObject prevents a nil pointer in a non-nil interface.
func asObject(u *unstructured.Unstructured) runtime.Object {
	if u == nil {
		return nil
	}
	return u
}

// surroundings are the other variables of expressions.
type surroundings struct {
	namespace *corev1.Namespace
	// params holds lookups; nil for policies without.
	params runtime.Object
}
