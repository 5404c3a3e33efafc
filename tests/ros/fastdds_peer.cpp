// A peer on eProsima Fast DDS, the middleware that ROS 2 uses by default, so that another implementation than ours judges what is sent.
//   fastdds_peer SECONDS [sub TOPIC TYPE QOS]... [pub TOPIC TYPE HEX]... [latch TOPIC TYPE HEX]...
// QOS: r reliable or b best effort, then v volatile or t transient local, then how many messages are wanted at least: it listens for so
// many seconds, and then until all have come. HEX: CDR with its header, or @FILE with its bytes; written ten times a second;
// latch offers it to readers that come later, too.
// Says what writers it discovers (WRITER topic type user-data) and, at the end, what came (GOT topic count last-as-hex, NUMBERS topic first last:
// the sequence numbers of the first and the last one that came).
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/domain/DomainParticipantListener.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace fast = eprosima::fastdds::dds;
using Bytes = std::vector<unsigned char>;
using Payload = eprosima::fastrtps::rtps::SerializedPayload_t;

// a type of which only the name is known: its samples are their bytes
struct AnyType : fast::TopicDataType {
  explicit AnyType(const std::string& name) {
    setName(name.c_str());
    m_typeSize = 1 << 21;
    m_isGetKeyDefined = false;
    auto_fill_type_object(false);
    auto_fill_type_information(false);
  }
  bool serialize(void* data, Payload* payload) override {
    const Bytes& bytes = *static_cast<Bytes*>(data);
    std::memcpy(payload->data, bytes.data(), bytes.size());
    payload->length = bytes.size();
    payload->encapsulation = CDR_LE;
    return true;
  }
  bool deserialize(Payload* payload, void* data) override {
    static_cast<Bytes*>(data)->assign(payload->data, payload->data + payload->length);
    return true;
  }
  std::function<uint32_t()> getSerializedSizeProvider(void* data) override {
    return [data] { return static_cast<uint32_t>(static_cast<Bytes*>(data)->size()); };
  }
  void* createData() override { return new Bytes; }
  void deleteData(void* data) override { delete static_cast<Bytes*>(data); }
  bool getKey(void*, eprosima::fastrtps::rtps::InstanceHandle_t*, bool) override { return false; }
};

std::mutex guard;
std::map<std::string, std::pair<int, Bytes>> got;
std::map<std::string, std::pair<long, long>> numbers;

struct Taker : fast::DataReaderListener {
  void on_data_available(fast::DataReader* reader) override {
    Bytes bytes;
    fast::SampleInfo info;
    while (reader->take_next_sample(&bytes, &info) == ReturnCode_t::RETCODE_OK) {
      if (!info.valid_data) continue;
      std::lock_guard<std::mutex> lock(guard);
      const std::string name = reader->get_topicdescription()->get_name();
      const long number = info.sample_identity.sequence_number().to64long();
      auto& [count, last] = got[name];
      if (!count++) numbers[name].first = number;
      numbers[name].second = number;
      last = bytes;
    }
  }
} taker;

struct Finder : fast::DomainParticipantListener {
  void on_publisher_discovery(fast::DomainParticipant*, eprosima::fastrtps::rtps::WriterDiscoveryInfo&& found) override {
    const auto& data = found.info.m_qos.m_userData;
    std::printf("WRITER %s %s %.*s\n", found.info.topicName().c_str(), found.info.typeName().c_str(), (int)data.size(), (const char*)data.data());
    std::fflush(stdout);
  }
} finder;

int main(int argc, char** argv) {
  const int seconds = argc > 1 ? std::atoi(argv[1]) : 5;
  const char* domain = std::getenv("ROS_DOMAIN_ID");
  auto* factory = fast::DomainParticipantFactory::get_instance();
  auto* participant = factory->create_participant(domain ? std::atoi(domain) : 0, fast::PARTICIPANT_QOS_DEFAULT, &finder, fast::StatusMask::none());
  auto* subscriber = participant->create_subscriber(fast::SUBSCRIBER_QOS_DEFAULT);
  auto* publisher = participant->create_publisher(fast::PUBLISHER_QOS_DEFAULT);
  const auto dynamic = eprosima::fastrtps::rtps::DYNAMIC_RESERVE_MEMORY_MODE;
  std::vector<std::pair<fast::DataWriter*, Bytes>> writers;
  std::map<std::string, int> least;
  for (int i = 2; i + 3 < argc; i += 4) {
    const std::string what = argv[i], topic_name = argv[i + 1], type_name = argv[i + 2], rest = argv[i + 3];
    fast::TypeSupport type(new AnyType(type_name));
    type.register_type(participant);
    auto* topic = participant->create_topic(topic_name, type_name, fast::TOPIC_QOS_DEFAULT);
    if (what == "sub") {
      fast::DataReaderQos qos;
      qos.reliability().kind = rest[0] == 'r' ? fast::RELIABLE_RELIABILITY_QOS : fast::BEST_EFFORT_RELIABILITY_QOS;
      qos.durability().kind = rest[1] == 't' ? fast::TRANSIENT_LOCAL_DURABILITY_QOS : fast::VOLATILE_DURABILITY_QOS;
      qos.history().depth = 10;  // as ROS 2 has it
      qos.endpoint().history_memory_policy = dynamic;
      subscriber->create_datareader(topic, qos, &taker);
      if (rest.size() > 2) least[topic_name] = std::stoi(rest.substr(2));
    } else {
      Bytes bytes;
      if (rest[0] == '@') {
        std::ifstream file(rest.substr(1), std::ios::binary);
        bytes.assign(std::istreambuf_iterator<char>(file), {});
      } else
        for (size_t k = 0; k + 1 < rest.size(); k += 2) bytes.push_back(std::stoi(rest.substr(k, 2), nullptr, 16));
      fast::DataWriterQos qos;
      qos.reliability().kind = fast::RELIABLE_RELIABILITY_QOS;
      if (what == "latch") qos.durability().kind = fast::TRANSIENT_LOCAL_DURABILITY_QOS;
      qos.endpoint().history_memory_policy = dynamic;
      writers.emplace_back(publisher->create_datawriter(topic, qos), bytes);
    }
  }
  const auto waits = [&] {
    std::lock_guard<std::mutex> lock(guard);
    for (auto& [topic, count] : least)
      if (got[topic].first < count) return true;
    return false;
  };
  for (int tick = 0; tick < 10 * seconds || (tick < 10 * (seconds + 110) && waits()); ++tick) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (tick > 10)
      for (auto& [writer, bytes] : writers) writer->write(&bytes);
  }
  {
    std::lock_guard<std::mutex> lock(guard);
    for (auto& [topic, entry] : got) {
      if (!entry.first) continue;
      std::printf("GOT %s %d ", topic.c_str(), entry.first);
      for (unsigned char byte : entry.second) std::printf("%02x", byte);
      std::printf("\nNUMBERS %s %ld %ld\n", topic.c_str(), numbers[topic].first, numbers[topic].second);
    }
  }
  std::fflush(stdout);
  participant->delete_contained_entities();
  factory->delete_participant(participant);
}
