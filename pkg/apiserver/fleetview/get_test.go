// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/scheme"
)

// qualifiedOver is a request through a view that qualifies names, with two members.
func qualifiedOver(info apirequest.RequestInfo, path string, query url.Values) *exchange {
	return &exchange{
		request: &request{url: &url.URL{Path: path}, info: &info},
		view:    &view{qualified: true}, members: []string{"east", "west"}, query: query,
	}
}

func TestExchange_QualifiedNamesGoToTheNamedMember(t *testing.T) {
	const pods, inShop = "/api/v1/pods", "/api/v1/namespaces/shop/pods"
	for name, c := range map[string]struct {
		namespace, path, selector string
		// want is the path, and the selector if there is one, of the request to each member.
		want map[string]string
	}{
		"all objects of all members": {
			path: pods, want: map[string]string{"east": pods, "west": pods},
		},
		"a namespace as it is on every member": {
			namespace: "shop", path: inShop, want: map[string]string{"east": inShop, "west": inShop},
		},
		"a namespace as the view shows it": {
			namespace: "west.shop", path: "/api/v1/namespaces/west.shop/pods", want: map[string]string{"west": inShop},
		},
		"the name of an object": {
			path: pods, selector: "metadata.name=west.web", want: map[string]string{"west": pods + " metadata.name=web"},
		},
		"the Pods of a node, by the name that the view shows of the node": {
			path: pods, selector: "spec.nodeName=west.n1,status.phase!=Failed",
			want: map[string]string{"west": pods + " spec.nodeName=n1,status.phase!=Failed"},
		},
		"the Pods of a node, by the name that the view shows in Pods": {
			path: pods, selector: "spec.nodeName=n1.example.com",
			want: map[string]string{"east": pods + " spec.nodeName=n1.example.com", "west": pods + " spec.nodeName=n1.example.com"},
		},
		"the events of a kubelet, which says its name instead of a UID": {
			path: "/api/v1/events", selector: "involvedObject.name=east.n1,involvedObject.uid=east.n1",
			want: map[string]string{"east": "/api/v1/events involvedObject.name=n1,involvedObject.uid=n1"},
		},
		"the events of an object": {
			path: "/api/v1/events", selector: "involvedObject.name=east.web,involvedObject.uid=0-1",
			want: map[string]string{"east": "/api/v1/events involvedObject.name=web,involvedObject.uid=0-1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			query := url.Values{}
			if c.selector != "" {
				query.Set("fieldSelector", c.selector)
			}
			x := qualifiedOver(apirequest.RequestInfo{Namespace: c.namespace, Resource: "pods"}, c.path, query)
			requests, err := x.memberRequests(http.Header{})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, q := range requests {
				got[q.member] = q.url.Path
				if selector := q.url.Query().Get("fieldSelector"); selector != "" {
					got[q.member] += " " + selector
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("members with a request (-want +got):\n%s", diff)
			}
		})
	}
}

// k9s reviews access this way before it shows a log, and client-go sends the review as protobuf.
func TestExchange_AccessReviewOfAQualifiedNameGoesToItsMember(t *testing.T) {
	for name, c := range map[string]struct {
		requested string
		want      map[string]string
	}{
		"all objects":             {requested: "", want: map[string]string{"east": "", "west": ""}},
		"one of a qualified name": {requested: "west.web", want: map[string]string{"west": "web"}},
		"one of another name":     {requested: "web", want: map[string]string{"east": "web", "west": "web"}},
	} {
		for _, form := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
			t.Run(name+" in "+form, func(t *testing.T) {
				info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), form)
				body, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, authorizationv1.SchemeGroupVersion), &authorizationv1.SelfSubjectAccessReview{
					Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Name: c.requested}},
				})
				if err != nil {
					t.Fatal(err)
				}
				x := qualifiedOver(apirequest.RequestInfo{Resource: "selfsubjectaccessreviews"}, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", nil)
				requests, err := x.reviewRequests(http.Header{"Content-Type": {form}}, body)
				if err != nil {
					t.Fatal(err)
				}
				got := map[string]string{}
				for _, q := range requests {
					// Decoded as an API server does, which finds the kind only in the body.
					object, _, err := scheme.Codecs.UniversalDeserializer().Decode(q.body, nil, nil)
					if err != nil {
						t.Fatal(err)
					}
					got[q.member] = object.(*authorizationv1.SelfSubjectAccessReview).Spec.ResourceAttributes.Name
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("names in the requests (-want +got):\n%s", diff)
				}
			})
		}
	}
}
