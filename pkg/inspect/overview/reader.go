// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

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

// reader decodes custom resources, which are always JSON, in one pass. The universal decoder of a
// client parses each response a second time to find its kind, which is known here. That was a
// third of the cost of a command with a thousand members.
type reader struct {
	client.WithWatch
	config *rest.Config
	http   *http.Client
	codecs serializer.CodecFactory
}

// newClient creates a client for a hub.
func newClient(config *rest.Config, kinds *runtime.Scheme, mapper meta.RESTMapper) (client.WithWatch, error) {
	shared, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the hub at %s: %w", config.Host, err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: kinds, Mapper: mapper, HTTPClient: shared})
	if err != nil {
		return nil, fmt.Errorf("connecting to the hub at %s: %w", config.Host, err)
	}
	return &reader{WithWatch: c, config: config, http: shared, codecs: serializer.NewCodecFactory(kinds)}, nil
}

// List implements client.Reader.
func (r *reader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := r.list(ctx, list, options...)
	if apierrors.IsNotFound(err) { // A list is only not found if its kind does not exist.
		return fmt.Errorf("the cluster at %s does not serve this kind; check that your context points to the hub of a fleet: %w", r.config.Host, err)
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
		// A user with only the verb get falls through to a normal request.
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

// notOlderThan requests an object at a resource version or later. An API server that has seen that
// version answers from its watch cache at once.
func notOlderThan(version string) client.GetOption {
	return &client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: version}}
}

// getFromList gets an object as the only item of a list, which an API server answers from its watch
// cache. A get reads the object from etcd and decodes it, which took ten times as long for a
// placement with the status of a thousand members.
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

// onlyOf is a list whose only item is decoded into an object; nil if the list is empty.
type onlyOf struct {
	Items [1]any `json:"items"`
}

// request prepares the request for a kind; not ok if reader does not handle the kind.
func (r *reader) request(of runtime.Object) (request *rest.Request, ok bool, err error) {
	switch of.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return nil, false, nil
	}
	kind, err := apiutil.GVKForObject(of, r.Scheme())
	if err != nil {
		return nil, false, err
	}
	// Built-in kinds are read as protobuf, which is cheaper than JSON.
	if !strings.Contains(kind.Group, ".") || strings.HasSuffix(kind.Group, ".k8s.io") {
		return nil, false, nil
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	mapping, err := r.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, false, fmt.Errorf("looking up kind %s on the hub: %w", kind.Kind, err)
	}
	restClient, err := apiutil.RESTClientForGVK(kind, true, false, r.config, r.codecs, r.http)
	if err != nil {
		return nil, false, fmt.Errorf("connecting to the hub at %s: %w", r.config.Host, err)
	}
	return restClient.Get().Resource(mapping.Resource.Resource), true, nil
}

// read decodes a response into the object or into the list that contains it, or returns the error of
// the hub.
func read(answer rest.Result, into any, object runtime.Object) error {
	if err := answer.Error(); err != nil {
		return err
	}
	text, err := answer.Raw()
	if err != nil {
		return err
	}
	reflect.ValueOf(object).Elem().SetZero() // The caller may reuse an object.
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("decoding the hub's response: %w", err)
	}
	object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // As typed clients leave it.
	return nil
}
