// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// reader reads custom resources, which only come as JSON, in one pass: the decoder of all kinds
// that a client has goes through each answer once more to learn of which kind it is, and that is
// known here. Of what a command costs at a thousand members a third was that.
type reader struct {
	client.WithWatch
	config *rest.Config
	http   *http.Client
	codecs serializer.CodecFactory
}

// newClient makes a client of a hub. The error says why it cannot be reached.
func newClient(config *rest.Config, kinds *runtime.Scheme, mapper meta.RESTMapper) (client.WithWatch, error) {
	shared, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("reaching the hub at %s: %w", config.Host, err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: kinds, Mapper: mapper, HTTPClient: shared})
	if err != nil {
		return nil, fmt.Errorf("reaching the hub at %s: %w", config.Host, err)
	}
	return &reader{WithWatch: c, config: config, http: shared, codecs: serializer.NewCodecFactory(kinds)}, nil
}

// List implements client.Reader.
func (r *reader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := r.list(ctx, list, options...)
	if apierrors.IsNotFound(err) { // A list that is not there is of a kind that is not there.
		return fmt.Errorf("the hub at %s does not have what is listed: does your context lead to the hub of a fleet? %w", r.config.Host, err)
	}
	return err
}

func (r *reader) list(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	request, ok, err := r.request(list)
	if err != nil {
		return err
	}
	if !ok {
		return r.WithWatch.List(ctx, list, options...)
	}
	o := &client.ListOptions{}
	o.ApplyOptions(options)
	request.SpecificallyVersionedParams(o.AsListOptions(), metav1.ParameterCodec, metav1.SchemeGroupVersion)
	if o.Namespace != "" {
		request.Namespace(o.Namespace)
	}
	return read(request.Do(ctx), list, list)
}

// Get implements client.Reader.
func (r *reader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	request, ok, err := r.request(object)
	if err != nil {
		return err
	}
	if !ok {
		return r.WithWatch.Get(ctx, key, object, options...)
	}
	o := (&client.GetOptions{}).ApplyOptions(options).AsGetOptions()
	if _, large := object.(placementv1beta1.PlacementObject); large && o.ResourceVersion == "" {
		// Who may only get placements gets them.
		if err := r.getFromList(ctx, key, object); !apierrors.IsForbidden(err) {
			return err
		}
	}
	if key.Namespace != "" {
		request.Namespace(key.Namespace)
	}
	request.SpecificallyVersionedParams(o, metav1.ParameterCodec, metav1.SchemeGroupVersion)
	return read(request.Name(key.Name).Do(ctx), object, object)
}

// notOlderThan asks for an object as it was at a version of the hub's, or later. An API server that
// knows of that version has the answer in memory, and waits for nothing.
func notOlderThan(version string) client.GetOption {
	return &client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: version}}
}

// getFromList gets an object as the only one of a list, which an API server has in memory: for one
// that is asked for by itself it reads all that is stored of it anew, and of a placement on a
// thousand members, with the status of each, that took ten times as long.
func (r *reader) getFromList(ctx context.Context, key client.ObjectKey, object client.Object) error {
	request, _, err := r.request(object)
	if err != nil {
		return err
	}
	if key.Namespace != "" {
		request.Namespace(key.Namespace)
	}
	list := &onlyOf{Items: [1]any{object}}
	if err := read(request.Param("fieldSelector", fields.OneTermEqualSelector("metadata.name", key.Name).String()).Do(ctx), list, object); err != nil {
		return err
	}
	if list.Items[0] == nil {
		return apierrors.NewNotFound(placementv1beta1.GroupVersion.WithResource("placements").GroupResource(), key.Name)
	}
	return nil
}

// onlyOf is a list that is read into an object; nil if it was empty.
type onlyOf struct {
	Items [1]any `json:"items"`
}

// request is that for a kind; not ok if it is none that is read here.
func (r *reader) request(of runtime.Object) (request *rest.Request, ok bool, err error) {
	switch of.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return nil, false, nil
	}
	kind, err := apiutil.GVKForObject(of, r.Scheme())
	if err != nil {
		return nil, false, err
	}
	// Those of Kubernetes itself come in a form that is cheaper than JSON.
	if !strings.Contains(kind.Group, ".") || strings.HasSuffix(kind.Group, ".k8s.io") {
		return nil, false, nil
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	mapping, err := r.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, false, fmt.Errorf("asking the hub for kind %s: %w", kind.Kind, err)
	}
	asker, err := apiutil.RESTClientForGVK(kind, true, false, r.config, r.codecs, r.http)
	if err != nil {
		return nil, false, fmt.Errorf("reaching the hub at %s: %w", r.config.Host, err)
	}
	return asker.Get().Resource(mapping.Resource.Resource), true, nil
}

// read takes an answer into what has the object, or is it, or returns what the hub says instead.
func read(answer rest.Result, into any, object runtime.Object) error {
	if err := answer.Error(); err != nil {
		return err
	}
	text, err := answer.Raw()
	if err != nil {
		return err
	}
	reflect.ValueOf(object).Elem().SetZero() // It may have been something else before.
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("reading the hub's answer: %w", err)
	}
	object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // As clients of types leave it.
	return nil
}
